/* One library function is called for each small thing.
 * Expected: many-tiny-calls, known_tiny, the main thread; its time, measured by a clock whose
 * ticks are compared with another one's. */
#include "known.h"

int main(void)
{
    long start = known_now();
    unsigned long ticks = __builtin_ia32_rdtsc();
    for (int call = 0; call < 400000; call++)
        known_tiny();
    double ns_per_tick = (double)(known_now() - start) / (__builtin_ia32_rdtsc() - ticks);
    tell("thread", own_tid());
    tell("saves_ns", known_log(KNOWN_TINY)->total * ns_per_tick);
}
