// clone by its address, and by its name, with whichever C library, and what it says when it can't.
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>

static char stack[1 << 18] __attribute__((aligned(16)));

static int child(void *argument)
{
    return *(int *)argument;
}

int main(void)
{
    int (*volatile function)(int (*)(void *), void *, int, void *, ...) = clone;
    int wanted = 7, by_address = 0, by_name = 0;
    waitpid(function(child, stack + sizeof stack, SIGCHLD, &wanted), &by_address, 0);
    waitpid(clone(child, stack + sizeof stack, SIGCHLD, &wanted), &by_name, 0);
    errno = 0;
    int refused = function(child, stack + sizeof stack, CLONE_SIGHAND, &wanted);
    printf("%x %x %d %d\n", by_address, by_name, refused, errno == EINVAL);
    return 0;
}
