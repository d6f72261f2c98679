/* Threads that spend known times in a library, in a callback of the program inside a library
 * call, and in the program. Each tells its own in a file, in ns.
 * usage: conservation THREADS ROUNDS FILE */
#define _GNU_SOURCE
#include "trap.h"

#include <pthread.h>
#include <time.h>
#include <unistd.h>
#include <x86intrin.h>

struct times { uint64_t library, callback, program, life; int tid; };

static uint64_t spin_here(uint64_t ticks)
{
    uint64_t start = __rdtsc(), now;
    do
        now = __rdtsc();
    while (now - start < ticks);
    return now - start;
}

static void callback(void *argument)
{
    struct times *times = argument;
    times->library += trap_spin(200000);
    times->callback += spin_here(300000);
    times->library += trap_spin(100000);
}

static long rounds;

static void *run(void *argument)
{
    struct times *times = argument;
    uint64_t start = __rdtsc();
    times->tid = gettid();
    for (long i = 0; i < rounds; i++) {
        trap_call(callback, times);
        times->program += spin_here(500000);
        /* Many short calls: what the hook adds to each must not turn up as the program's time. */
        for (int k = 0; k < 100; k++)
            trap_empty();
    }
    times->life = __rdtsc() - start;
    return NULL;
}

int main(int argc, char **argv)
{
    CHECK(argc == 4);
    long threads = atol(argv[1]);
    rounds = atol(argv[2]);
    struct timespec a, b;
    clock_gettime(CLOCK_MONOTONIC, &a);
    uint64_t ticks = __rdtsc();
    enum { MOST = 64 };
    struct times times[MOST] = {0};
    pthread_t running[MOST];
    CHECK(threads <= MOST);
    for (long i = 0; i < threads; i++)
        CHECK(pthread_create(&running[i], NULL, run, &times[i]) == 0);
    for (long i = 0; i < threads; i++)
        pthread_join(running[i], NULL);
    clock_gettime(CLOCK_MONOTONIC, &b);
    ticks = __rdtsc() - ticks;
    double ns = (double)(b.tv_sec - a.tv_sec) * 1e9 + (double)(b.tv_nsec - a.tv_nsec);
    double scale = ns / (double)ticks;
    FILE *out = fopen(argv[3], "w");
    for (long i = 0; i < threads; i++)
        fprintf(out, "%d %.0f %.0f %.0f %.0f\n", times[i].tid, (double)times[i].library * scale,
                (double)times[i].callback * scale, (double)times[i].program * scale,
                (double)times[i].life * scale);
    fclose(out);
    return 0;
}
