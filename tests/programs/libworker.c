/* Its constructor starts a thread, whose creation nobody can see, and which works later on. The library then has it end. */
#include "trap.h"

#include <pthread.h>
#include <semaphore.h>

static sem_t wanted;
static pthread_t thread;

static void *work(void *argument)
{
    while (sem_wait(&wanted))
        ;
    for (int i = 0; i < 10; i++)
        trap_empty();
    /* In its own code, which is the library's. */
    volatile long sum = 0;
    for (long i = 0; i < 30000000; i++)
        sum += i;
    return argument;
}

__attribute__((constructor)) static void loaded(void)
{
    CHECK(sem_init(&wanted, 0, 0) == 0);
    CHECK(pthread_create(&thread, NULL, work, NULL) == 0);
}

void worker_end(void)
{
    sem_post(&wanted);
    pthread_join(thread, NULL);
}
