/* Tail calls into a PLT entry: the called function returns to the caller's caller, so frames look
 * alike.
 * usage: tail_call ROUNDS */
#include "trap.h"

__attribute__((noinline, optimize("O2"))) static long next(long a) { return trap_add(a, 1); }

__attribute__((noinline, optimize("O2"))) static void call(void (*callback)(void *), void *argument)
{
    return trap_call(callback, argument);
}

__attribute__((noinline, optimize("O2"))) static void tail_callback(void *argument)
{
    long *count = argument;
    if (--*count > 0)
        return call(tail_callback, argument);
    return trap_empty();
}

int main(int argc, char **argv)
{
    long rounds = atol(argv[argc - 1]), sum = 0;
    for (long i = 0; i < rounds; i++)
        sum = next(sum);
    for (long i = 0; i < rounds / 100; i++) {
        long count = 10;
        call(tail_callback, &count);
    }
    printf("sum %ld\n", sum);
    return 0;
}
