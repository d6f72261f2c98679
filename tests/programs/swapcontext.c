/* Coroutines that are suspended inside library callbacks, and go on on other threads, in another
 * order than they were suspended in.
 * usage: swapcontext COROUTINES ROUNDS THREADS */
#include "trap.h"

#include <pthread.h>
#include <ucontext.h>

struct coroutine {
    ucontext_t own, *scheduler;
    long number, rounds, done;
};

static long coroutines, rounds, threads;
static struct coroutine *all;
static pthread_barrier_t barrier;

static void suspend(void *argument)
{
    struct coroutine *self = argument;
    self->done = trap_add(self->done, 1);
    swapcontext(&self->own, self->scheduler);
    trap_empty();
}

static void twice(void *argument)
{
    trap_call(suspend, argument);
    trap_call(suspend, argument);
}

static void body(unsigned low, unsigned high)
{
    struct coroutine *self = (struct coroutine *)((unsigned long)high << 32 | low);
    for (long i = 0; i < self->rounds; i++)
        trap_call(i % 3 ? suspend : twice, self);
    self->number = -self->number;
    for (;;)
        swapcontext(&self->own, self->scheduler);
}

static void *scheduler(void *argument)
{
    long me = (long)argument;
    ucontext_t here;
    /* Each coroutine makes four suspensions in three rounds. */
    for (long step = 0; step <= rounds + (rounds + 2) / 3; step++) {
        for (long i = (me + step) % threads; i < coroutines; i += threads) {
            all[i].scheduler = &here;
            swapcontext(&here, &all[i].own);
        }
        pthread_barrier_wait(&barrier);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    CHECK(argc == 4);
    coroutines = atol(argv[1]), rounds = atol(argv[2]), threads = atol(argv[3]);
    all = calloc((size_t)coroutines, sizeof *all);
    pthread_barrier_init(&barrier, NULL, (unsigned)threads);
    for (long i = 0; i < coroutines; i++) {
        struct coroutine *self = &all[i];
        self->number = i + 1, self->rounds = rounds;
        getcontext(&self->own);
        self->own.uc_stack.ss_size = 64 << 10;
        self->own.uc_stack.ss_sp = malloc(64 << 10);
        unsigned long address = (unsigned long)self;
        makecontext(&self->own, (void (*)(void))body, 2, (unsigned)address,
                    (unsigned)(address >> 32));
    }
    pthread_t others[64];
    for (long i = 1; i < threads; i++)
        CHECK(pthread_create(&others[i], NULL, scheduler, (void *)i) == 0);
    scheduler(0);
    for (long i = 1; i < threads; i++)
        pthread_join(others[i], NULL);
    long done = 0, finished = 0;
    for (long i = 0; i < coroutines; i++)
        done += all[i].done, finished += all[i].number < 0;
    printf("suspended %ld finished %ld\n", done, finished);
    return 0;
}
