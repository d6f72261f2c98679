/* Work whose time is known by its rounds: each waits for the one before. */
#pragma once

static __attribute__((noinline)) unsigned long spin(unsigned long rounds)
{
    unsigned long state = rounds;
    for (unsigned long i = 0; i < rounds; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        __asm__ volatile("" : "+r"(state));
    }
    return state;
}
