// A consumer sleeps for each message that it takes: the queue is full, and the producer waits for room.
// cause: sleeping-stage
// group: consume
// site: handle sleepy_consumer.c
// says: while produce waits for it
#include "planted.h"

enum { ITEMS = 300, ROOM = 8 };

static pthread_mutex_t queue_mu = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t has_room = PTHREAD_COND_INITIALIZER, has_items = PTHREAD_COND_INITIALIZER;
static int queued;

static void put(void)
{
    pthread_mutex_lock(&queue_mu);
    while (queued == ROOM)
        pthread_cond_wait(&has_room, &queue_mu);
    queued++;
    pthread_cond_signal(&has_items);
    pthread_mutex_unlock(&queue_mu);
}

static void take(void)
{
    pthread_mutex_lock(&queue_mu);
    while (!queued)
        pthread_cond_wait(&has_items, &queue_mu);
    queued--;
    pthread_cond_signal(&has_room);
    pthread_mutex_unlock(&queue_mu);
}

__attribute__((noinline)) static void handle(void)
{
    usleep(1000);
    work(20000);
}

static void *produce(void *argument)
{
    for (int item = 0; item < ITEMS; item++) {
        work(30000);
        put();
    }
    return argument;
}

static void *consume(void *argument)
{
    for (int item = 0; item < ITEMS; item++) {
        take();
        handle();
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
    return 0;
}
