/* Calls on stacks that are left and come back to. */
#ifndef COROUTINES_H
#define COROUTINES_H

#include "state.h"

#include <ucontext.h>

namespace {

struct Coroutine {
    ucontext_t self, caller;
    State state;
    uint64_t result;
    char stack[256 << 10];
};
thread_local Coroutine *starting;
void body()
{
    Coroutine *own = starting;
    own->result = several(own->state);
    swapcontext(&own->self, &own->caller);
    own->result = own->result * 31 + several(own->state);
    struct Both {
        Coroutine *own;
    } both{own};
    /* Suspended inside of a call. */
    own->result += CALL(torture_apply)([](void *context, uint64_t value) {
        Coroutine *it = static_cast<Both *>(context)->own;
        swapcontext(&it->self, &it->caller);
        return value + several(it->state);
    }, &both, 4);
    for (;;)
        swapcontext(&own->self, &own->caller);
}
uint64_t resumed(void *context, uint64_t value)
{
    Coroutine *one = static_cast<Coroutine *>(context);
    swapcontext(&one->caller, &one->self);
    return value + one->result;
}
uint64_t coroutines(State &state)
{
    volatile uint64_t sum = 0;
    Coroutine *all[2];
    for (Coroutine *&one : all) {
        one = static_cast<Coroutine *>(calloc(1, sizeof *one));
        getcontext(&one->self);
        one->self.uc_stack.ss_sp = one->stack;
        one->self.uc_stack.ss_size = sizeof one->stack;
        one->state = state.fork(state.fuel / 4);
        one->state.small = true;
        makecontext(&one->self, body, 0);
        starting = one;
        swapcontext(&one->caller, &one->self);
    }
    /* In turns, also from inside of other calls; some are never finished. */
    unsigned turns = static_cast<unsigned>(state.below(5));
    for (unsigned i = 0; i < turns; i++) {
        Coroutine *one = all[i % 2];
        if (state.below(2))
            sum = sum + CALL(torture_apply)(resumed, one, i);
        else
            sum = sum + resumed(one, i);
    }
    for (Coroutine *one : all)
        free(one);
    return sum;
}

} // namespace

#endif
