/* Calls nested ever deeper, with short calls and jumps at the bottom, while a signal handler does the same: whatever
 * a thread keeps its open calls in, each of its borders is crossed over and over, and interrupted.
 * usage: nested DEPTH ROUNDS; how many signals were handled is told. */
#include "trap.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/time.h>

static long rounds;
static jmp_buf target;
static volatile long handled;

static long nothing(long depth)
{
    (void)depth;
    return 0;
}

static long jump(long depth)
{
    if (depth == 0)
        longjmp(target, 1);
    return trap_nest(depth - 1, jump);
}

static void handle(int signal)
{
    (void)signal;
    int old = errno;
    handled += trap_nest(0, nothing);
    errno = old;
}

static long deeper(long depth)
{
    if (depth > 0)
        return trap_nest(depth - 1, deeper);
    for (long i = 0; i < rounds; i++) {
        trap_empty();
        trap_call((void (*)(void *))nothing, NULL);
        if (i % 8 == 0 && setjmp(target) == 0)
            trap_nest(i % 3, jump);
    }
    return 0;
}

int main(int argc, char **argv)
{
    long depth = atol(argv[argc - 2]);
    rounds = atol(argv[argc - 1]);
    CHECK(signal(SIGALRM, handle) != SIG_ERR);
    struct itimerval every = {{0, 100}, {0, 100}};
    CHECK(setitimer(ITIMER_REAL, &every, NULL) == 0);
    long sum = 0;
    for (long at = 1; at <= depth; at++)
        sum += trap_nest(at - 1, deeper);
    CHECK(setitimer(ITIMER_REAL, &(struct itimerval){0}, NULL) == 0);
    CHECK(signal(SIGALRM, SIG_IGN) != SIG_ERR);
    printf("sum %ld\n", sum);
    trap_tell("told", "handled", handled);
    return 0;
}
