/* Calls functions with a stack that is not aligned as the ABI wants it: code in assembly and of other compilers does, and runs
 * as long as what it calls asks for no alignment. On the main thread and on others.
 * usage: misaligned CALLS */
#define _GNU_SOURCE
#include "trap.h"

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Each calls the function of its name, with the return address where the stack's alignment wants nothing. */
#define MISALIGNED(result, name, ...) \
    result misaligned_##name(__VA_ARGS__); \
    __asm__(".text\n" \
            "misaligned_" #name ":\n" \
            ".cfi_startproc\n" \
            "call " #name "@PLT\n" \
            "ret\n" \
            ".cfi_endproc\n")

MISALIGNED(void, trap_empty, void);
MISALIGNED(long, trap_add, long, long);
MISALIGNED(float, trap_halve, float);
MISALIGNED(void, trap_call, void (*)(void *), void *);
MISALIGNED(long, syscall, long);

static long calls;

static void callback(void *sum)
{
    misaligned_trap_empty();
    *(long *)sum += trap_add(*(long *)sum, 1) & 7;
}

static long work(void)
{
    long sum = 0;
    for (long i = 0; i < calls; i++) {
        sum += misaligned_trap_add(sum, i) & 7;
        sum += (long)misaligned_trap_halve(6.0f);
        misaligned_trap_call(callback, &sum);
        sum += misaligned_syscall(SYS_getppid) == getppid();
    }
    return sum;
}

static void *thread(void *argument)
{
    return (void *)(work() + (long)argument);
}

int main(int argc, char **argv)
{
    CHECK(argc > 1);
    calls = strtol(argv[1], NULL, 10);
    printf("%ld\n", work());
    for (long i = 0; i < 2; i++) {
        pthread_t id;
        void *result;
        CHECK(pthread_create(&id, NULL, thread, (void *)i) == 0);
        CHECK(pthread_join(id, &result) == 0);
        printf("%ld\n", (long)result);
    }
    return 0;
}
