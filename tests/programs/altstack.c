/* Handlers on an alternate stack, above and below the thread's own, that call libraries and
 * return into the middle of library callbacks, nested three deep.
 * usage: altstack ROUNDS */
#define _GNU_SOURCE
#include "trap.h"

#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>

static __thread volatile long depth, sum;

static void nested(void *argument)
{
    sum = trap_add(sum, 1);
    if (depth < 3) {
        depth++;
        raise((int)(long)argument);
        depth--;
    }
    trap_empty();
}

static void handler(int signal) { trap_call(nested, (void *)(long)signal); }

static void *run(void *argument)
{
    stack_t stack = {.ss_size = 1 << 18};
    stack.ss_sp = mmap(NULL, stack.ss_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                       -1, 0);
    CHECK(sigaltstack(&stack, NULL) == 0);
    for (long i = 0; i < (long)argument; i++)
        trap_call(nested, (void *)(long)(i % 2 ? SIGUSR1 : SIGUSR2));
    return (void *)sum;
}

int main(int argc, char **argv)
{
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_ONSTACK | SA_NODEFER};
    sigaction(SIGUSR1, &action, NULL);
    sigaction(SIGUSR2, &action, NULL);
    void *rounds = (void *)atol(argv[argc - 1]), *other;
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, run, rounds) == 0);
    long mine = (long)run(rounds);
    pthread_join(thread, &other);
    printf("main %ld thread %ld\n", mine, (long)other);
    return 0;
}
