/* longjmp out of library callbacks, from one to three deep: the frames it abandons never return.
 * usage: longjmp ROUNDS */
#include "trap.h"

#include <setjmp.h>

static jmp_buf target;

struct level { long round, depth; };

static void callback(void *argument)
{
    struct level *level = argument;
    if (level->depth == 0) {
        trap_empty();
        longjmp(target, (int)(level->round % 100) + 1);
    }
    struct level next = {level->round, level->depth - 1};
    trap_call(callback, &next);
}

static long sum;

static void round_of(void *argument)
{
    struct level level = {(long)argument, (long)argument % 3};
    int value = setjmp(target);
    if (value == 0)
        trap_call(callback, &level);
    sum = trap_add(sum, value);
}

int main(int argc, char **argv)
{
    long rounds = atol(argv[argc - 1]);
    /* Half of the rounds inside a callback of their own, which returns as it should. */
    for (long i = 0; i < rounds; i++)
        if (i % 2)
            trap_call(round_of, (void *)i);
        else
            round_of((void *)i);
    printf("sum %ld\n", sum);
    return 0;
}
