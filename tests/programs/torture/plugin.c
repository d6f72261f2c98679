/* Loaded and unloaded again and again, under several names, so that one takes another's place. */
#include "calls.h"

struct shared *shared;

void plugin_begin(struct shared *of) { shared = of; }

uint64_t plugin_work(uint64_t seed, uint64_t rounds)
{
    uint64_t sum = PLUGIN;
    for (uint64_t i = 0; i < rounds; i++)
        sum = sum * 31 + (uint64_t)CALL(trap_add)((long)sum, (long)(seed + i));
    CALL(trap_empty)();
    return sum;
}

/* A tail call out of the plugin. */
long plugin_pass(long a, long b) { return CALL(torture_pass)(a + PLUGIN, b); }
