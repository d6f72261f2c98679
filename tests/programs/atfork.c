/* Handlers of pthread_atfork that call libraries, and forks that no handler sees.
 * usage: atfork FORKS */
#define _GNU_SOURCE
#include "trap.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static void prepare(void) { trap_empty(); }
static void in_parent(void) { trap_add(1, 1); }
static void in_child(void) { trap_leaf(1); }

static int child_of_clone(void *argument)
{
    (void)argument;
    for (int i = 0; i < 10; i++)
        trap_halve(1);
    return 5;
}

static long wait_for(pid_t child)
{
    int status;
    CHECK(child > 0 && waitpid(child, &status, 0) == child);
    return WIFEXITED(status) && WEXITSTATUS(status) == 5;
}

int main(int argc, char **argv)
{
    long forks = atol(argv[argc - 1]), good = 0;
    static char stack[1 << 16] __attribute__((aligned(16)));
    CHECK(pthread_atfork(prepare, in_parent, in_child) == 0);
    for (long i = 0; i < forks; i++) {
        pid_t child = fork();
        if (child == 0)
            _exit(5);
        good += wait_for(child);
#if __GLIBC_PREREQ(2, 34)
        child = _Fork();
        if (child == 0)
            _exit(child_of_clone(NULL));
        good += wait_for(child);
#endif
        child = (pid_t)syscall(SYS_fork);
        if (child == 0)
            _exit(child_of_clone(NULL));
        good += wait_for(child);
        good += wait_for(clone(child_of_clone, stack + sizeof stack, SIGCHLD, NULL));
        trap_halve(2);
    }
    printf("good %ld\n", good);
    return 0;
}
