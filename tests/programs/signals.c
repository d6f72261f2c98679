/* A signal handler that calls libraries, at 10 kHz, over a program that calls libraries all the
 * time: whatever takes two instructions is interrupted between them. Tells its counts in a file.
 * usage: signals SIGNALS FILE */
#define _GNU_SOURCE
#include "trap.h"

#include <signal.h>
#include <time.h>

static volatile long handled, leaves;

static void in_handler(void *argument) { leaves += trap_leaf((long)argument) != 0; }

static void handler(int signal)
{
    (void)signal;
    trap_empty();
    trap_call(in_handler, (void *)1);
    handled++;
}

static void in_main(void *argument) { *(long *)argument = trap_add(*(long *)argument, 1); }

int main(int argc, char **argv)
{
    CHECK(argc == 3);
    long wanted = atol(argv[1]), rounds = 0, wrong = 0, sum = 0;
    struct sigaction action = {.sa_handler = handler};
    sigaction(SIGRTMIN, &action, NULL);
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN};
    timer_t timer;
    CHECK(timer_create(CLOCK_MONOTONIC, &event, &timer) == 0);
    struct itimerspec every = {{0, 100000}, {0, 100000}};
    CHECK(timer_settime(timer, 0, &every, NULL) == 0);
    while (handled < wanted) {
        trap_call(in_main, &sum);
        wrong += trap_leaf(rounds) != 12 * rounds + 66;
        rounds++;
    }
    CHECK(timer_delete(timer) == 0);
    printf("wrong %ld %s\n", wrong, sum == rounds && leaves == handled ? "even" : "odd");
    trap_tell(argv[2], "handled", handled);
    trap_tell(argv[2], "rounds", rounds);
    return 0;
}
