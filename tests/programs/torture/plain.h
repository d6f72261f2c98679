/* Calls that do nothing but return, with all kinds of arguments and results. */
#ifndef PLAIN_H
#define PLAIN_H

#include "state.h"

namespace {

uint64_t leaves(State &state)
{
    long value = static_cast<long>(state.below(1000));
    CALL(trap_empty)();
    value = CALL(trap_add)(value, 3);
    return static_cast<uint64_t>(CALL(trap_leaf)(value));
}

uint64_t values(State &state)
{
    double d = static_cast<double>(state.below(1 << 20));
    long l = static_cast<long>(state.below(1 << 20));
    struct pair pair = CALL(trap_swap)({d, d / 2});
    struct mixed mixed = CALL(trap_mixed)({l, d});
    struct small few = CALL(trap_small)({'a', static_cast<short>(l), 0.5f});
    struct large large = {};
    for (int i = 0; i < 12; i++)
        large.v[i] = l + i;
    large = CALL(trap_reverse)(large);
    __int128 product = CALL(trap_mul128)(static_cast<__int128>(l) << 40, l + 1);
    long double sum = CALL(trap_addl)(d, 0.25L);
    double doubles = CALL(trap_sum_doubles)(4, d, 1.5, 2.5, 3.5);
    long longs = CALL(trap_sum_longs)(8, l, 1L, 2L, 3L, 4L, 5L, 6L, 7L);
    long many = CALL(trap_many)(l, 2, 3, 4, 5, 6, 7, 8, 9, 10, d, 2, 3, 4, 5, 6, 7, 8, 9, 10);
    double eight[8] = {d, 1, 2, 3, 4, 5, 6, 7};
    double vectors = CALL(torture_vectors)(eight);
    uint64_t result = CALL(trap_not)(l & 1) + static_cast<uint64_t>(CALL(trap_negate)(5));
    result += static_cast<uint64_t>(CALL(trap_halve)(3.0f) * 4);
    result = result * 31 + static_cast<uint64_t>(pair.x + pair.y * 3);
    result = result * 31 + static_cast<uint64_t>(mixed.i) + static_cast<uint64_t>(few.s + few.f * 8);
    result = result * 31 + static_cast<uint64_t>(large.v[0] ^ large.v[11]);
    result = result * 31 + static_cast<uint64_t>(product >> 20) + static_cast<uint64_t>(sum * 4);
    return result * 31 + static_cast<uint64_t>(doubles + vectors) + static_cast<uint64_t>(longs ^ many);
}

/* Enough to be sampled. */
uint64_t hot(State &state)
{
    long sum = 0, rounds = 500 + static_cast<long>(state.below(4000));
    for (long i = 0; i < rounds; i++)
        sum = CALL(trap_add)(sum, i);
    for (long i = 0; i < rounds / 4; i++)
        sum ^= static_cast<long>(CALL(torture_apply)([](void *, uint64_t value) {
            return static_cast<uint64_t>(CALL(trap_leaf)(static_cast<long>(value)));
        }, nullptr, static_cast<uint64_t>(i)));
    return static_cast<uint64_t>(sum);
}

__attribute__((noinline)) long tail(long a, long b) { return CALL(torture_pass)(a, b); }
uint64_t tails(State &state)
{
    long sum = static_cast<long>(state.below(100));
    for (int i = 0; i < 20; i++)
        sum = tail(sum, i);
    return static_cast<uint64_t>(sum);
}

} // namespace

#endif
