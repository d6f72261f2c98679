// A producer whose consumer is slow: the queue between them is full.
// cause: limiting-stage
// group: consume
// object: has_room
// site: put slow_consumer.c
// waker: consume, in pthread_cond_signal
// size: told
#include "planted.h"

enum { ITEMS = 60, ROOM = 4 };

static pthread_mutex_t queue_mu = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t has_room = PTHREAD_COND_INITIALIZER, has_items = PTHREAD_COND_INITIALIZER;
static int queued;
static long waited;

__attribute__((noinline)) static void put(void)
{
    pthread_mutex_lock(&queue_mu);
    long start = now_ns();
    while (queued == ROOM)
        pthread_cond_wait(&has_room, &queue_mu);
    waited += now_ns() - start;
    queued++;
    pthread_cond_signal(&has_items);
    pthread_mutex_unlock(&queue_mu);
}

__attribute__((noinline)) static void take(void)
{
    pthread_mutex_lock(&queue_mu);
    while (!queued)
        pthread_cond_wait(&has_items, &queue_mu);
    queued--;
    pthread_cond_signal(&has_room);
    pthread_mutex_unlock(&queue_mu);
}

static void *produce(void *argument)
{
    for (int item = 0; item < ITEMS; item++) {
        work(300000);
        put();
    }
    return argument;
}

static void *consume(void *argument)
{
    for (int item = 0; item < ITEMS; item++) {
        take();
        work(1500000);
    }
    return argument;
}

int main(void)
{
    pthread_t producer, consumer;
    pthread_create(&producer, NULL, produce, NULL);
    pthread_create(&consumer, NULL, consume, NULL);
    pthread_join(producer, NULL);
    pthread_join(consumer, NULL);
    tell_size(waited);
    return 0;
}
