/* Calls of known duration. Tells the truth in a file: what the library itself measured of its
 * spinning, and what a call takes that no hook sees: one of an empty function, and one that spins
 * above what it measured, which begins and ends with its reading of the clock.
 * usage: durations SPIN_NS CALLS FILE */
#define _GNU_SOURCE
#include "trap.h"

#include <dlfcn.h>
#include <sched.h>
#include <sys/resource.h>
#include <time.h>
#include <x86intrin.h>

static uint64_t monotonic_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

int main(int argc, char **argv)
{
    CHECK(argc == 4);
    /* Fewer interruptions, where it is allowed. */
    struct sched_param first = {1};
    (void)sched_setscheduler(0, SCHED_FIFO, &first);

    uint64_t ns = monotonic_ns(), ticks = __rdtsc(), spun = 0;
    for (long i = 0; i < atol(argv[2]); i++)
        spun += trap_spin((uint64_t)atol(argv[1]));

    void (*volatile empty)(void) = (void (*)(void))dlsym(RTLD_DEFAULT, "trap_empty");
    long calls = 1000000;
    uint64_t best = UINT64_MAX;
    for (int repeat = 0; repeat < 5; repeat++) {
        uint64_t start = __rdtsc();
        for (long i = 0; i < calls; i++)
            empty();
        uint64_t took = __rdtsc() - start;
        best = took < best ? took : best;
    }
    uint64_t (*volatile spin)(uint64_t) = (uint64_t (*)(uint64_t))dlsym(RTLD_DEFAULT, "trap_spin");
    long spins = 2000;
    uint64_t around = UINT64_MAX;
    for (int repeat = 0; repeat < 5; repeat++) {
        uint64_t start = __rdtsc(), inside = 0;
        for (long i = 0; i < spins; i++)
            inside += spin(1000);
        uint64_t took = __rdtsc() - start - inside;
        around = took < around ? took : around;
    }
    for (long i = 0; i < calls; i++)
        trap_empty();

    ticks = __rdtsc() - ticks, ns = monotonic_ns() - ns;
    double ns_per_tick = (double)ns / (double)ticks;
    trap_tell(argv[3], "spin_ns", (long)((double)spun * ns_per_tick));
    trap_tell(argv[3], "around_ps", (long)((double)around * ns_per_tick / (double)spins * 1000));
    trap_tell(argv[3], "empty_ps", (long)((double)best * ns_per_tick / (double)calls * 1000));
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    trap_tell(argv[3], "preempted", usage.ru_nivcsw);
    return 0;
}
