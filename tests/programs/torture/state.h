/* What all actions of a random program share. */
#ifndef STATE_H
#define STATE_H

#include "calls.h"

#include <atomic>
#include <pthread.h>

struct shared *shared;
/* What forks count in; null in these. */
struct shared *of_forks;

namespace {

char **arguments;
int argument_count;
pthread_key_t key;

/* What an action may use up and do. It is passed along, never thread-local: coroutines have their own. */
struct State {
    uint64_t random;
    long fuel;
    int depth;
    /* On a small stack: nothing deep. In the child of a process with several threads: nothing that takes locks. */
    bool small, alone;

    uint64_t next()
    {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        return random * 0x2545f4914f6cdd1dull;
    }
    uint64_t below(uint64_t limit) { return (next() >> 33) % limit; }
    State fork(long of_fuel)
    {
        uint64_t own = next() | 1;
        long part = of_fuel < fuel ? of_fuel : fuel;
        fuel -= part;
        return {own, part, depth + 1, small, alone};
    }
};

std::atomic<int> threads{1};

uint64_t act(State &state);
uint64_t several(State &state)
{
    uint64_t sum = 1;
    while (state.fuel > 0 && state.below(4) != 0)
        sum = sum * 31 + act(state);
    return sum;
}

} // namespace

#endif
