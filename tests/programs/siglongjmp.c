/* siglongjmp out of signal handlers that interrupt library callbacks, on the same stack and on an
 * alternate one, by a raised signal and by a fault.
 * usage: siglongjmp ROUNDS */
#define _GNU_SOURCE
#include "trap.h"

#include <setjmp.h>
#include <signal.h>

static sigjmp_buf target;
static volatile long sum;

static void handler(int signal)
{
    trap_empty();
    siglongjmp(target, signal);
}

static void raising(void *argument)
{
    (void)argument;
    raise(SIGUSR1);
    abort();
}

static void faulting(void *argument) { *(volatile int *)argument = 1; }

static void twice(void *argument)
{
    trap_call(argument ? faulting : raising, NULL);
    abort();
}

int main(int argc, char **argv)
{
    long rounds = atol(argv[argc - 1]);
    for (volatile int alternate = 0; alternate < 2; alternate++) {
        stack_t stack = {.ss_sp = malloc(1 << 16), .ss_size = 1 << 16};
        CHECK(sigaltstack(&stack, NULL) == 0);
        struct sigaction action = {.sa_handler = handler, .sa_flags = alternate ? SA_ONSTACK : 0};
        sigaction(SIGUSR1, &action, NULL);
        sigaction(SIGSEGV, &action, NULL);
        for (volatile long i = 0; i < rounds; i++) {
            int signal = sigsetjmp(target, 1);
            if (signal == 0)
                trap_call(twice, (void *)(i % 2));
            sum = trap_add(sum, signal);
        }
    }
    printf("sum %ld\n", sum);
    return 0;
}
