/* Many short calls of scripted durations. Tells how long they took in all, how much of that was taken
 * by others, and what one in a thousand took at least.
 * usage: script KIND THREADS CALLS FILE */
#define _GNU_SOURCE
#include "trap.h"

#include <dlfcn.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <x86intrin.h>

uint64_t script_spin(uint64_t ticks, uint64_t *taken);

static const char *kind;
static long calls;

struct thread { pthread_t id; long number; uint64_t spun, taken; uint32_t *durations; };

static uint64_t random_of(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static uint64_t duration(long i, long number, uint64_t *state)
{
    if (strcmp(kind, "even") == 0)
        return 600;
    if (strcmp(kind, "drift") == 0)
        return 300 + 2000 * (uint64_t)i / (uint64_t)calls;
    if (strcmp(kind, "bursts") == 0)
        return i % 20000 < 1000 ? 6000 : 300;
    if (strcmp(kind, "bimodal") == 0)
        return random_of(state) % 10 == 0 ? 3000 : 300;
    if (strcmp(kind, "periodic") == 0)
        return i % 128 == 0 ? 10000 : 300;
    if (strcmp(kind, "threads") == 0)
        return 300 * (uint64_t)(number + 1);
    if (strcmp(kind, "heavy") == 0) {
        /* Pareto's distribution with the exponent 1.5: its variance is infinite. */
        double u = (double)(random_of(state) >> 11) * 0x1p-53 + 1e-9;
        double ticks = 300 * pow(u, -1 / 1.5);
        return ticks < 1e6 ? (uint64_t)ticks : 1000000;
    }
    CHECK(!"a kind that is known");
    return 0;
}

static void *run(void *argument)
{
    struct thread *thread = argument;
    uint64_t state = (uint64_t)thread->number * 7919 + 12345;
    for (long i = 0; i < calls; i++) {
        uint64_t spun = script_spin(duration(i, thread->number, &state), &thread->taken);
        thread->spun += spun;
        thread->durations[i] = spun < UINT32_MAX ? (uint32_t)spun : UINT32_MAX;
    }
    return NULL;
}

static int by_value(const void *a, const void *b)
{
    uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;
    return (left > right) - (left < right);
}

static uint64_t monotonic_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

int main(int argc, char **argv)
{
    CHECK(argc == 5);
    /* Fewer interruptions, where it is allowed. */
    struct sched_param first = {1};
    (void)sched_setscheduler(0, SCHED_FIFO, &first);
    struct rusage before, after;
    getrusage(RUSAGE_SELF, &before);
    kind = argv[1];
    long threads = atol(argv[2]);
    calls = atol(argv[3]);
    struct thread all[16] = {0};
    CHECK(threads <= 16);
    size_t count = (size_t)(threads * calls);
    uint32_t *durations = malloc(count * sizeof *durations);
    CHECK(durations != NULL);
    memset(durations, 1, count * sizeof *durations);
    uint64_t ns = monotonic_ns(), ticks = __rdtsc();
    for (long i = 0; i < threads; i++) {
        all[i].number = i;
        all[i].durations = durations + i * calls;
        if (i > 0)
            CHECK(pthread_create(&all[i].id, NULL, run, &all[i]) == 0);
    }
    run(&all[0]);
    uint64_t spun = all[0].spun, taken = all[0].taken;
    for (long i = 1; i < threads; i++) {
        pthread_join(all[i].id, NULL);
        spun += all[i].spun;
        taken += all[i].taken;
    }
    /* What a call takes beside its spinning, seen by no hook. */
    uint64_t (*volatile spin)(uint64_t, uint64_t *) =
        (uint64_t (*)(uint64_t, uint64_t *))dlsym(RTLD_DEFAULT, "script_spin");
    uint64_t least = UINT64_MAX;
    enum { ROUNDS = 1000 };
    for (int repeat = 0; repeat < 20; repeat++) {
        uint64_t start = __rdtsc(), inside = 0;
        for (int i = 0; i < ROUNDS; i++)
            inside += spin(0, &taken);
        uint64_t beside = __rdtsc() - start - inside;
        least = beside < least ? beside : least;
    }
    ticks = __rdtsc() - ticks, ns = monotonic_ns() - ns;
    double total = (double)spun + (double)least / ROUNDS * (double)(threads * calls);
    getrusage(RUSAGE_SELF, &after);
    trap_tell(argv[4], "preempted", after.ru_nivcsw - before.ru_nivcsw);
    trap_tell(argv[4], "total_ns", (long)(total * (double)ns / (double)ticks));
    trap_tell(argv[4], "taken_ns", (long)((double)taken * (double)ns / (double)ticks));
    qsort(durations, count, sizeof *durations, by_value);
    double p999 = durations[count - 1 - count / 1000];
    trap_tell(argv[4], "p999_ns", (long)(p999 * (double)ns / (double)ticks));
    free(durations);
    return 0;
}
