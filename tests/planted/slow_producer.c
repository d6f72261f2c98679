// A consumer whose producer is slow, by a semaphore.
// cause: limiting-stage
// group: produce
// object: items
// site: take slow_producer.c
// waker: produce, in sem_post
// size: told
#include <semaphore.h>
#include "planted.h"

#ifndef ITEMS
enum { ITEMS = 60, PRODUCED_IN_NS = 1500000, CONSUMED_IN_NS = 300000 };
#endif

sem_t items;
static long waited;

__attribute__((noinline)) static void take(void)
{
    long start = now_ns();
    while (sem_wait(&items)) {
    }
    waited += now_ns() - start;
}

static void *produce(void *argument)
{
    for (int item = 0; item < ITEMS; item++) {
        work(PRODUCED_IN_NS);
        sem_post(&items);
    }
    return argument;
}

static void *consume(void *argument)
{
    for (int item = 0; item < ITEMS; item++) {
        take();
        work(CONSUMED_IN_NS);
    }
    return argument;
}

int main(void)
{
    pthread_t producer, consumer;
    sem_init(&items, 0, 0);
    pthread_create(&consumer, NULL, consume, NULL);
    pthread_create(&producer, NULL, produce, NULL);
    pthread_join(producer, NULL);
    pthread_join(consumer, NULL);
    tell_size(waited);
    return 0;
}
