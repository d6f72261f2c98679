/* Interrupts dlopen at every instruction, by the trap flag, from its first allocation to the constructor of what it loads. Where a
 * lock is just taken and does not say yet by whom, the handler calls a library. (The allocator is this program's, so that it is
 * asked from inside.)
 * usage: stepped_load PLUGIN FILE */
#define _GNU_SOURCE
#include "trap.h"

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <ucontext.h>

static volatile long calls;
static long long lock_begin;
static pthread_mutex_t *lock;
static volatile int starts, ends;

/* Memory that is given once, and was zero before. What is done here is interrupted as well, and must call nothing. */
static char memory[1 << 24] __attribute__((aligned(16)));
static size_t used;

void *malloc(size_t size)
{
    char *given = memory + used + 16;
    used += 16 + (size + 15) / 16 * 16;
    if (used > sizeof memory)
        abort();
    *(size_t *)(given - 16) = size;
    if (starts) {
        starts = 0;
        __asm__ volatile("pushfq; orq $0x100, (%%rsp); popfq" ::: "memory", "cc");
    }
    return given;
}
void free(void *given) { (void)given; }
void *calloc(size_t count, size_t size) { return malloc(count * size); }
void *realloc(void *given, size_t size)
{
    volatile char *fresh = malloc(size), *old = given;
    size_t before = old ? *(size_t *)(given - 16) : 0;
    for (size_t i = 0; i < before && i < size; i++)
        fresh[i] = old[i];
    return (void *)fresh;
}

/* For the plugin's constructor. */
void loaded(void) { ends = 1; }

static void handler(int signal, siginfo_t *info, void *context)
{
    (void)signal, (void)info;
    greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
    if (ends)
        registers[REG_EFL] &= ~0x100l;
    if (registers[REG_RIP] == lock_begin)
        lock = (pthread_mutex_t *)registers[REG_RDI];
    if (lock && lock->__data.__lock != 0 && lock->__data.__owner == 0) {
        calls++;
        trap_leaf(calls);
    }
}

int main(int argc, char **argv)
{
    CHECK(argc == 3);
    lock_begin = (long long)dlsym(RTLD_DEFAULT, "pthread_mutex_lock");
    struct sigaction action = {0};
    action.sa_sigaction = handler;
    action.sa_flags = SA_SIGINFO;
    sigaction(SIGTRAP, &action, NULL);
    starts = 1;
    void *plugin = dlopen(argv[1], RTLD_NOW);
    CHECK(plugin && ends && calls > 0);
    printf("stepped through\n");
    trap_tell(argv[2], "calls", calls);
    return 0;
}
