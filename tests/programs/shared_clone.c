/* clone(CLONE_VM) without CLONE_SETTLS: two tasks run at once on one thread's data. */
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>

static int compare(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

static void work(void)
{
    for (int i = 0; i < 100000; i++) {
        int numbers[] = {4, 3, 2, 1};
        qsort(numbers, 4, sizeof(int), compare);
    }
}

static int child(void *argument)
{
    (void)argument;
    work();
    return 7;
}

int main(void)
{
    size_t size = 1 << 20;
    char *stack = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    pid_t pid = clone(child, stack + size, CLONE_VM | SIGCHLD, NULL);
    work();
    int status = 0;
    waitpid(pid, &status, 0);
    printf("%x\n", status);
    return 0;
}
