// A convoy on a robust mutex, one of an array of them.
// cause: serialising-lock
// object: shards
// site: deposit convoy_robust.c
// holder: worker, in nanosleep
// size: told
#include "planted.h"

enum { THREADS = 4, ROUNDS = 10 };

pthread_mutex_t shards[3];
static long waited[THREADS];

__attribute__((noinline)) static void deposit(long self, pthread_mutex_t *shard)
{
    long start = now_ns();
    if (pthread_mutex_lock(shard))
        exit(1);
    waited[self] += now_ns() - start;
    nap_ms(8);
    pthread_mutex_unlock(shard);
}

static void *worker(void *self)
{
    for (int round = 0; round < ROUNDS; round++)
        deposit((long)self, &shards[2]);
    return NULL;
}

int main(void)
{
    pthread_mutexattr_t robust;
    pthread_mutexattr_init(&robust);
    pthread_mutexattr_setrobust(&robust, PTHREAD_MUTEX_ROBUST);
    for (int i = 0; i < 3; i++)
        pthread_mutex_init(&shards[i], &robust);
    run_threads(THREADS, worker);
    tell_size(most(waited, THREADS));
    return 0;
}
