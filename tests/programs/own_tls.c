/* Tasks whose thread data the C library has not made: zeros, as much as errno needs, without and with a
 * pointer to itself, or a copy of the creator's. They call functions of libraries all the same. */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* (More than COPIED need not be there: the C library keeps 1,664 bytes free for libraries to come.) */
enum { BELOW = 64 << 10, ABOVE = 8 << 10, COPIED = 1600, STACK = 256 << 10, CALLS = 100000 };
enum { ZEROS, ZEROS_AND_ITSELF, COPY, CONTENTS };
enum { BY_CLONE, BY_SYSCALL, BY_CLONE3, WAYS };

static int compare(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

static int work(void)
{
    int sum = 0;
    for (int i = 0; i < CALLS; i++) {
        int numbers[] = {4, 3, 2, 1};
        qsort(numbers, 4, sizeof(int), compare);
        sum += numbers[0];
    }
    return sum;
}

static int child(void *contents)
{
    /* (Without a pointer to itself there is no address of errno.) */
    if (chdir("/nonexistent/there") == 0 || (*(int *)contents != ZEROS && errno != ENOENT))
        _exit(1);
    _exit(work() == CALLS ? 7 : 2);
}

static char *map(size_t size)
{
    return mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

/* Where the thread pointer of a new task is to be. */
static char *thread_data(int contents)
{
    char *new = map(BELOW + ABOVE) + BELOW, *own;
    __asm__("mov %%fs:0, %0" : "=r"(own));
    if (contents == COPY)
        memcpy(new - COPIED, own - COPIED, COPIED + 1024);
    if (contents != ZEROS)
        *(char **)new = *(char **)(new + 16) = new;
    return new;
}

static long start(int way, int contents, int flags)
{
    char *stack = map(STACK) + STACK, *tls = thread_data(contents);
    flags |= CLONE_SETTLS;
    if (way == BY_CLONE)
        return clone(child, stack, flags | CLONE_VM | SIGCHLD, &contents, NULL, tls, NULL);
    struct clone_args arguments = {
        .flags = flags, .exit_signal = SIGCHLD, .tls = (uintptr_t)tls};
    /* These have memory of their own, and so this stack. */
    long pid = way == BY_SYSCALL ? syscall(SYS_clone, flags | SIGCHLD, NULL, NULL, NULL, tls)
                                 : syscall(SYS_clone3, &arguments, sizeof arguments);
    if (pid == 0)
        child(&contents);
    return pid;
}

int main(void)
{
    work();
    /* Asks whether the kernel knows the call. */
    if (syscall(SYS_clone3, NULL, 0) != -1)
        return 1;
    for (int way = 0; way < WAYS; way++)
        for (int contents = 0; contents < CONTENTS; contents++)
            for (int waits = 0; waits < 2; waits++) {
                pid_t pid = start(way, contents, waits ? CLONE_VFORK : 0);
                int status = 0;
                if (waitpid(pid, &status, 0) != pid)
                    return 1;
                printf("%d %d %d: %x\n", way, contents, waits, status);
            }
    return work() == CALLS ? 0 : 1;
}
