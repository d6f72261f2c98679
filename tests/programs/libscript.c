/* A function that does as much as it is told to, and knows how long that took. It adds up in `taken`
 * what it has not spent itself: times in which the system, or the host, had the processor. */
#define _GNU_SOURCE
#include <stdint.h>
#include <x86intrin.h>

enum {
    /* What is done between two looks at the clock, and about what it takes with one of them. It is
     * told how much to do, and not how long: when a call begins does not change what it takes. */
    STEPS = 16,
    LOOK_TICKS = 75,
    /* Longer than from one look at the clock to the next. */
    GAP_TICKS = 2500,
};

/* The clock, when all before is done. */
static uint64_t now(void)
{
    _mm_lfence();
    return __rdtsc();
}

uint64_t script_spin(uint64_t ticks, uint64_t *taken)
{
    uint64_t start = now(), spun = 0, state = start;
    for (uint64_t looks = ticks / LOOK_TICKS; looks > 0; looks--) {
        /* Each step waits for the one before it, and for nothing that other programs use. */
        for (int step = 0; step < STEPS; step++) {
            state = state * 6364136223846793005u + 1442695040888963407u;
            __asm__ volatile("" : "+r"(state));
        }
        uint64_t elapsed = now() - start;
        if (elapsed - spun > GAP_TICKS)
            *taken += elapsed - spun;
        spun = elapsed;
    }
    return spun;
}
