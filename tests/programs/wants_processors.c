/* Threads that all want a processor. usage: wants_processors THREADS MILLIONS [CPU]; each does as much work, all on that processor if
 * one is named. */
#define _GNU_SOURCE
#include "trap.h"

#include <pthread.h>
#include <sched.h>

static long millions;
static int processor = -1;

static void *worker(void *argument)
{
    if (processor >= 0) {
        cpu_set_t one;
        CPU_ZERO(&one);
        CPU_SET(processor, &one);
        CHECK(pthread_setaffinity_np(pthread_self(), sizeof(one), &one) == 0);
    }
    volatile long sum = 0;
    for (long i = 0; i < millions * 1000000; i++)
        sum = sum + i;
    return argument;
}

int main(int argc, char **argv)
{
    CHECK(argc >= 3);
    int threads = atoi(argv[1]);
    pthread_t all[64];
    CHECK(threads <= 64);
    millions = atol(argv[2]);
    if (argc > 3)
        processor = atoi(argv[3]);
    for (int i = 0; i < threads; i++)
        CHECK(pthread_create(&all[i], NULL, worker, NULL) == 0);
    for (int i = 0; i < threads; i++)
        pthread_join(all[i], NULL);
    puts("done");
    return 0;
}
