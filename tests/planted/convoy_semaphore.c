// A convoy on a semaphore that lets one in at a time.
// cause: serialising-lock
// object: slot
// site: use_slot convoy_semaphore.c
// waker: worker, in sem_post
// size: told
#include <semaphore.h>
#include "planted.h"

enum { THREADS = 4, ROUNDS = 10 };

sem_t slot;
static long waited[THREADS];

__attribute__((noinline)) static void use_slot(long self)
{
    long start = now_ns();
    while (sem_wait(&slot)) {
    }
    waited[self] += now_ns() - start;
    nap_ms(8);
    sem_post(&slot);
}

static void *worker(void *self)
{
    for (int round = 0; round < ROUNDS; round++)
        use_slot((long)self);
    return NULL;
}

int main(void)
{
    sem_init(&slot, 0, 1);
    run_threads(THREADS, worker);
    tell_size(most(waited, THREADS));
    return 0;
}
