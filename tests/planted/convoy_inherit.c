// A convoy on a mutex that lends its holder the priority of who waits.
// cause: serialising-lock
// object: bus
// site: transmit convoy_inherit.c
// holder: worker, in nanosleep
// size: told
#include "planted.h"

enum { THREADS = 3, ROUNDS = 10 };

pthread_mutex_t bus;
static long waited[THREADS];

__attribute__((noinline)) static void transmit(long self)
{
    long start = now_ns();
    pthread_mutex_lock(&bus);
    waited[self] += now_ns() - start;
    nap_ms(10);
    pthread_mutex_unlock(&bus);
}

static void *worker(void *self)
{
    for (int round = 0; round < ROUNDS; round++)
        transmit((long)self);
    return NULL;
}

int main(void)
{
    pthread_mutexattr_t inherit;
    pthread_mutexattr_init(&inherit);
    pthread_mutexattr_setprotocol(&inherit, PTHREAD_PRIO_INHERIT);
    pthread_mutex_init(&bus, &inherit);
    run_threads(THREADS, worker);
    tell_size(most(waited, THREADS));
    return 0;
}
