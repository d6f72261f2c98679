/* A function that takes as long as it is told to, and knows how long that was. */
#define _GNU_SOURCE
#include <stdint.h>
#include <x86intrin.h>


uint64_t script_spin(uint64_t ticks)
{
    uint64_t start = __rdtsc(), spun;
    do
        spun = __rdtsc() - start;
    while (spun < ticks);
    return spun;
}
