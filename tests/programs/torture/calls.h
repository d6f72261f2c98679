/* The functions that the program and its plugins call, each with two counters that all processes of a run share: one for forks that
 * have not executed a program, and one for the others. */
#ifndef CALLS_H
#define CALLS_H

#include "../trap.h"

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define FUNCTIONS(X)                                                                               \
    X(trap_empty) X(trap_add) X(trap_leaf) X(trap_call) X(trap_nest) X(trap_swap) X(trap_mixed)    \
    X(trap_small) X(trap_reverse) X(trap_mul128) X(trap_addl) X(trap_sum_doubles)                  \
    X(trap_sum_longs) X(trap_many) X(trap_not) X(trap_negate) X(trap_halve) X(torture_vectors)     \
    X(torture_apply) X(torture_pass)

enum {
#define X(name) AT_##name,
    FUNCTIONS(X)
#undef X
    FUNCTION_COUNT
};

struct shared {
    uint64_t checksum, calls[FUNCTION_COUNT];
    /* Calls that may or may not have been made: see CALL_IF_NOT_CANCELLED. */
    uint64_t begun[FUNCTION_COUNT];
};
extern struct shared *shared;
/* A page. */
#define SHARED 4096L

/* Counts a call and gives the function to be called. Nothing that may jump away comes in between. */
#define CALL(name) (__atomic_fetch_add(&shared->calls[AT_##name], 1, __ATOMIC_RELAXED), name)

/* The same in a signal handler. Up to glibc 2.40, a thread that waits in a system call can be cancelled at any instruction, which
 * lets a cancellation end the handler that has interrupted it: after the call was counted here, before it was made. */
#define CALL_IF_NOT_CANCELLED(name, ...)                                                           \
    (__atomic_fetch_add(&shared->begun[AT_##name], 1, __ATOMIC_RELAXED), CALL(name)(__VA_ARGS__),  \
     __atomic_fetch_sub(&shared->begun[AT_##name], 1, __ATOMIC_RELAXED))

/* libtorture.so: vectors of 32 bytes in registers where the processor has them; a callback with an argument and a result;
 * a tail call through the library's own import. */
double torture_vectors(const double *eight);
uint64_t torture_apply(uint64_t (*function)(void *, uint64_t), void *context, uint64_t value);
long torture_pass(long a, long b);

#ifdef __cplusplus
}
#endif
#endif
