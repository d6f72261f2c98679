/* Ends that the C library is not asked for: by its function for system calls, by an instruction, by the return of
 * a routine of clone.
 * usage: raw_exit HOW CALLS */
#define _GNU_SOURCE
#include "trap.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static long calls;

static long work(void)
{
    long sum = 0;
    for (long i = 0; i < calls; i++)
        sum += trap_add(sum, i) & 7;
    return sum;
}

static int child(void *argument)
{
    (void)argument;
    return work() > 0 ? 5 : 6;
}

static void *thread(void *argument)
{
    work();
    return argument;
}

int main(int argc, char **argv)
{
    static char stack[1 << 18] __attribute__((aligned(16)));
    const char *how = argv[1];
    (void)argc;
    calls = strtol(argv[2], NULL, 10);
    work();
    if (strcmp(how, "exit_group") == 0)
        syscall(SYS_exit_group, 5);
    if (strcmp(how, "exit") == 0)
        syscall(SYS_exit, 5);
    if (strcmp(how, "instruction") == 0)
        __asm__ volatile("syscall" : : "a"(SYS_exit_group), "D"(5) : "rcx", "r11", "memory");
    if (strcmp(how, "thread") == 0) {
        pthread_t id;
        pthread_create(&id, NULL, thread, NULL);
        pthread_join(id, NULL);
        __asm__ volatile("syscall" : : "a"(SYS_exit_group), "D"(5) : "rcx", "r11", "memory");
    }
    int status;
    pid_t pid = clone(child, stack + sizeof stack, SIGCHLD, NULL);
    CHECK(pid > 0 && waitpid(pid, &status, 0) == pid);
    return WEXITSTATUS(status);
}
