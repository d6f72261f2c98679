/* A timer's handler leaves by siglongjmp, from wherever the program is in its library calls: at any
 * instruction of them. Tells its counts in a file.
 * usage: escape JUMPS FILE */
#define _GNU_SOURCE
#include "trap.h"

#include <setjmp.h>
#include <signal.h>
#include <sys/time.h>

static sigjmp_buf target;
static volatile long jumps, rounds, begun;
static volatile sig_atomic_t armed;

static void handler(int signal)
{
    (void)signal;
    if (!armed)
        return;
    armed = 0;
    trap_empty();
    siglongjmp(target, 1);
}

static void in_callback(void *argument)
{
    begun++;
    trap_leaf((long)argument);
}

int main(int argc, char **argv)
{
    CHECK(argc == 3);
    long wanted = atol(argv[1]);
    struct sigaction action = {.sa_handler = handler};
    sigaction(SIGALRM, &action, NULL);
    struct itimerval every = {{0, 200}, {0, 200}};
    CHECK(setitimer(ITIMER_REAL, &every, NULL) == 0);
    if (sigsetjmp(target, 1))
        jumps++;
    while (jumps < wanted) {
        armed = 1;
        rounds++;
        trap_call(in_callback, (void *)1);
    }
    every = (struct itimerval){{0, 0}, {0, 0}};
    setitimer(ITIMER_REAL, &every, NULL);
    for (int i = 0; i < 1000; i++)
        trap_add(i, i);
    puts("escaped");
    trap_tell(argv[2], "jumps", jumps);
    trap_tell(argv[2], "rounds", rounds);
    trap_tell(argv[2], "begun", begun);
    return 0;
}
