// A thread wakes now and then to refresh something, until it is told to stop, while others hand work to each other; and one paces
// others, which wait for its ticks and say when they have done.
// cause: none
#include "planted.h"

enum { ITEMS = 20000, TICKS = 60 };

static pthread_mutex_t mu = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t has_items = PTHREAD_COND_INITIALIZER, ticks = PTHREAD_COND_INITIALIZER;
static pthread_cond_t is_done = PTHREAD_COND_INITIALIZER;
static int queued, ticked, done;
static atomic_int stop;

static void *refresh(void *argument)
{
    for (long times = 0; !atomic_load(&stop); times++) {
        work(10000);
        nap_ms(20);
    }
    return argument;
}

static void *pace(void *argument)
{
    for (int tick = 0; tick < TICKS; tick++) {
        nap_ms(15);
        pthread_mutex_lock(&mu);
        ticked++;
        pthread_cond_signal(&ticks);
        pthread_mutex_unlock(&mu);
    }
    return argument;
}

static void *follow(void *argument)
{
    for (int tick = 0; tick < TICKS; tick++) {
        pthread_mutex_lock(&mu);
        while (ticked <= tick)
            pthread_cond_wait(&ticks, &mu);
        done++;
        pthread_cond_signal(&is_done);
        pthread_mutex_unlock(&mu);
        work(500000);
    }
    return argument;
}

static void *take(void *argument)
{
    for (int item = 0; item < ITEMS; item++) {
        pthread_mutex_lock(&mu);
        while (!queued)
            pthread_cond_wait(&has_items, &mu);
        queued--;
        pthread_mutex_unlock(&mu);
        work(5000);
    }
    return argument;
}

int main(void)
{
    void *(*routines[])(void *) = {take, pace, follow, refresh};
    pthread_t threads[4];
    for (int number = 0; number < 4; number++)
        pthread_create(&threads[number], NULL, routines[number], NULL);
    for (int item = 0; item < ITEMS; item++) {
        work(300);
        pthread_mutex_lock(&mu);
        queued++;
        pthread_cond_signal(&has_items);
        pthread_mutex_unlock(&mu);
    }
    for (int number = 0; number < 4; number++) {
        atomic_store(&stop, number >= 2);
        pthread_join(threads[number], NULL);
    }
    return 0;
}
