/* Threads that end by a system call, so that the C library does not notice.
 * usage: vanish function|instruction|joined THREADS CALLS */
#define _GNU_SOURCE
#include "trap.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static const char *how;
static long calls;
static atomic_int id;

static void *vanish(void *argument)
{
    long sum = 0;
    for (long i = 0; i < calls; i++)
        sum = trap_add(sum, i);
    *(long *)argument = sum;
    id = gettid();
    if (strcmp(how, "function") == 0)
        syscall(SYS_exit, 0);
    __asm__ volatile("syscall" : : "a"(SYS_exit), "D"(0) : "rcx", "r11", "memory");
    return NULL;
}

int main(int argc, char **argv)
{
    (void)argc;
    how = argv[1];
    calls = strtol(argv[3], NULL, 10);
    long sum = 0;
    for (long i = strtol(argv[2], NULL, 10); i > 0; i--) {
        pthread_t thread;
        long part = 0;
        id = 0;
        if (pthread_create(&thread, NULL, vanish, &part) != 0)
            return 1;
        if (strcmp(how, "instruction") != 0) {
            /* The next one gets its stack. */
            pthread_join(thread, NULL);
        } else {
            while (id == 0 || syscall(SYS_tgkill, getpid(), id, 0) == 0)
                usleep(100);
        }
        sum += part;
    }
    printf("%ld\n", sum);
    return 0;
}
