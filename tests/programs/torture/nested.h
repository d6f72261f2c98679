/* Calls in other calls; calls that never return; calls in handlers of signals. */
#ifndef NESTED_H
#define NESTED_H

#include "state.h"

#include <cerrno>
#include <csetjmp>
#include <csignal>
#include <execinfo.h>

namespace {

/* ---- one in the other ---- */

uint64_t applied(void *context, uint64_t value)
{
    return value + several(*static_cast<State *>(context));
}
uint64_t nested(State &state)
{
    State inner = state.fork(state.fuel / 2);
    uint64_t result = CALL(torture_apply)(applied, &inner, state.next());
    state.fuel += inner.fuel;
    return result;
}

long deeper(long depth)
{
    if (depth <= 0)
        return CALL(trap_add)(depth, 1);
    return CALL(trap_nest)(depth - 1, deeper) + (depth & 3);
}
uint64_t deep(State &state)
{
    return static_cast<uint64_t>(deeper(static_cast<long>(state.below(state.small ? 20 : 1500))));
}

int compare(const void *a, const void *b)
{
    long left = *static_cast<const long *>(a), right = *static_cast<const long *>(b);
    return CALL(trap_add)(left, -right) < 0 ? -1 : left > right;
}
uint64_t sorted(State &state)
{
    long numbers[40];
    for (long &number : numbers)
        number = static_cast<long>(state.below(1000));
    qsort(numbers, 40, sizeof numbers[0], compare);
    return static_cast<uint64_t>(numbers[0] * 31 + numbers[20] * 7 + numbers[39]);
}

/* ---- left without a return ---- */

struct Jump {
    jmp_buf target;
    State *state;
};
uint64_t jumping(void *context, uint64_t)
{
    Jump *jump = static_cast<Jump *>(context);
    several(*jump->state);
    longjmp(jump->target, 1);
}
__attribute__((noinline)) uint64_t jumps(State &state)
{
    State inner = state.fork(state.fuel / 3);
    Jump jump;
    jump.state = &inner;
    if (setjmp(jump.target) == 0)
        CALL(torture_apply)(jumping, &jump, 0);
    return 5;
}

uint64_t throwing(void *context, uint64_t value)
{
    several(*static_cast<State *>(context));
    throw static_cast<int>(value);
}
uint64_t rethrowing(void *context, uint64_t value)
{
    struct Guard {
        ~Guard() { CALL(trap_empty)(); }
    } guard;
    return CALL(torture_apply)(throwing, context, value);
}
uint64_t throws(State &state)
{
    State inner = state.fork(state.fuel / 3);
    try {
        CALL(torture_apply)(rethrowing, &inner, state.below(1000));
    } catch (int number) {
        return static_cast<uint64_t>(number) + static_cast<uint64_t>(CALL(trap_add)(number, 1));
    }
    return 0;
}

/* ---- signals ---- */

uint64_t in_handler(void *, uint64_t value)
{
    CALL_IF_NOT_CANCELLED(trap_add, static_cast<long>(value), 1);
    return value;
}
void handler(int)
{
    int before = errno;
    CALL_IF_NOT_CANCELLED(trap_leaf, 1);
    CALL_IF_NOT_CANCELLED(torture_apply, in_handler, nullptr, 2);
    errno = before;
}
uint64_t signals(State &state)
{
    errno = 77;
    for (uint64_t i = state.below(4); i > 0; i--)
        raise(SIGUSR1);
    return static_cast<uint64_t>(errno);
}

uint64_t looks_back(State &)
{
    return CALL(torture_apply)([](void *, uint64_t) {
        void *frames[64];
        return static_cast<uint64_t>(backtrace(frames, 64) > 3);
    }, nullptr, 0);
}

} // namespace

#endif
