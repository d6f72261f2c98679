/* vfork: the child runs on its parent's stack and thread, and leaves by _exit or exec; posix_spawn
 * does the same inside the C library.
 * usage: vfork ROUNDS */
#define _GNU_SOURCE
#include "trap.h"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;
static long exits, execs, spawns, failures;

static int wait_for(pid_t child)
{
    int status;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void round_of(void *argument)
{
    long i = (long)argument;
    pid_t child = vfork();
    if (child == 0) {
        trap_empty();
        _exit((int)(i % 100));
    }
    exits += wait_for(child) == i % 100;

    char *const command[] = {"true", NULL};
    child = vfork();
    if (child == 0) {
        trap_add(1, i);
        execve("/bin/true", command, environ);
        _exit(1);
    }
    execs += wait_for(child) == 0;

    child = vfork();
    if (child == 0) {
        execve("/nowhere/true", command, environ);
        trap_empty();
        _exit(7);
    }
    failures += wait_for(child) == 7;

    CHECK(posix_spawn(&child, "/bin/true", NULL, NULL, command, environ) == 0);
    spawns += wait_for(child) == 0;
    trap_leaf(i);
}

int main(int argc, char **argv)
{
    long rounds = atol(argv[argc - 1]);
    for (long i = 0; i < rounds; i++)
        if (i % 2)
            trap_call(round_of, (void *)i);
        else
            round_of((void *)i);
    printf("exits %ld execs %ld failures %ld spawns %ld\n", exits, execs, failures, spawns);
    return 0;
}
