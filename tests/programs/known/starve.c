/* A producer takes long for what three consumers are done with soon.
 * Expected: starved-consumers, pthread_cond_wait, the consumers; the longest wait. */
#include "known.h"

enum { ITEMS = 90, CONSUMERS = 3 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t more = PTHREAD_COND_INITIALIZER;
static int ready, done;
static long waited[CONSUMERS];

static void *consume(void *argument)
{
    long self = (long)argument;
    for (;;) {
        pthread_mutex_lock(&lock);
        while (!ready && !done) {
            long start = known_now();
            pthread_cond_wait(&more, &lock);
            waited[self] += known_now() - start;
        }
        int end = !ready;
        ready -= !end;
        pthread_mutex_unlock(&lock);
        if (end)
            return NULL;
        known_pack(3 * MS);
    }
}

static void *produce(void *argument)
{
    (void)argument;
    for (int item = 0; item <= ITEMS; item++) {
        if (item < ITEMS)
            known_parse(4 * MS);
        pthread_mutex_lock(&lock);
        if (item < ITEMS)
            ready++;
        else
            done = 1;
        pthread_mutex_unlock(&lock);
        if (item < ITEMS)
            pthread_cond_signal(&more);
        else
            pthread_cond_broadcast(&more);
    }
    return NULL;
}

int main(void)
{
    /* Different start routines: different groups. */
    pthread_t producer, consumers[CONSUMERS];
    for (long i = 0; i < CONSUMERS; i++)
        pthread_create(&consumers[i], NULL, consume, (void *)i);
    pthread_create(&producer, NULL, produce, NULL);
    pthread_join(producer, NULL);
    long most = 0;
    for (long i = 0; i < CONSUMERS; i++) {
        pthread_join(consumers[i], NULL);
        most = waited[i] > most ? waited[i] : most;
    }
    tell("saves_ns", most);
}
