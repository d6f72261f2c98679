// A thread makes items one by one, and several others, which do next to nothing with each, wait for it all the time.
// cause: limiting-stage
// group: make
// object: has_items
// site: take slow_source.c
// waker: make, in pthread_cond_signal
// size: told
#include "planted.h"

enum { ITEMS = 120, TAKERS = 2 };

static pthread_mutex_t items_mu = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t has_items = PTHREAD_COND_INITIALIZER;
static int items, is_over;
static long waited[TAKERS];

/* Waits for an item; returns whether there is one. */
__attribute__((noinline)) static int take(long taker)
{
    pthread_mutex_lock(&items_mu);
    long start = now_ns();
    while (!items && !is_over)
        pthread_cond_wait(&has_items, &items_mu);
    waited[taker] += now_ns() - start;
    int is_item = items > 0;
    items -= is_item;
    pthread_mutex_unlock(&items_mu);
    return is_item;
}

static void *make(void *argument)
{
    for (int item = 0; item < ITEMS; item++) {
        work(1000000);
        pthread_mutex_lock(&items_mu);
        items++;
        pthread_cond_signal(&has_items);
        pthread_mutex_unlock(&items_mu);
    }
    pthread_mutex_lock(&items_mu);
    is_over = 1;
    pthread_cond_broadcast(&has_items);
    pthread_mutex_unlock(&items_mu);
    return argument;
}

static void *use(void *argument)
{
    while (take((long)argument))
        work(1000);
    return NULL;
}

int main(void)
{
    pthread_t maker, users[TAKERS];
    pthread_create(&maker, NULL, make, NULL);
    for (long i = 0; i < TAKERS; i++)
        pthread_create(&users[i], NULL, use, (void *)i);
    pthread_join(maker, NULL);
    for (int i = 0; i < TAKERS; i++)
        pthread_join(users[i], NULL);
    tell_size(most(waited, TAKERS));
    return 0;
}
