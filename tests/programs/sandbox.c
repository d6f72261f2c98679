/* Two sandboxes: each has a user and a pid namespace, whose first process starts another one and becomes
 * another program. */
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { STACK = 256 << 10 };

static int ended(pid_t pid)
{
    int status = 0;
    return pid > 0 && waitpid(pid, &status, 0) == pid ? WEXITSTATUS(status) : 99;
}

static int inside(void *program)
{
    pid_t pid = fork();
    if (pid == 0)
        _exit(getpid() + 10);
    if (getpid() != 1 || ended(pid) != 12)
        _exit(1);
    execl(program, program, "first", (char *)NULL);
    _exit(2);
}

int main(int count, char **arguments)
{
    if (count > 1)
        return getpid() == 1 ? 7 : 3;
    for (int i = 0; i < 2; i++) {
        char *stack = malloc(STACK);
        int flags = CLONE_NEWUSER | CLONE_NEWPID | SIGCHLD;
        pid_t pid = clone(inside, stack + STACK, flags, arguments[0]);
        if (pid < 0)
            perror("clone");
        printf("%d\n", ended(pid));
    }
    return 0;
}
