/* A function that takes as long as it is told to, and knows how long that was. It adds up in `taken`
 * what it has not spent itself: times in which the system, or the host, had the processor. */
#define _GNU_SOURCE
#include <stdint.h>
#include <x86intrin.h>

/* Longer than from one look at the clock to the next. */
enum { GAP_TICKS = 2500 };

uint64_t script_spin(uint64_t ticks, uint64_t *taken)
{
    uint64_t start = __rdtsc(), spun = 0;
    do {
        uint64_t now = __rdtsc() - start;
        if (now - spun > GAP_TICKS)
            *taken += now - spun;
        spun = now;
    } while (spun < ticks);
    return spun;
}
