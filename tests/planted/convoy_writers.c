// Writers wait for each other at a read-write lock.
// cause: serialising-lock
// object: index_lock
// site: insert convoy_writers.c
// waker: worker, in pthread_rwlock_unlock
// size: told
#include "planted.h"

enum { THREADS = 4, ROUNDS = 10 };

pthread_rwlock_t index_lock = PTHREAD_RWLOCK_INITIALIZER;
static long waited[THREADS];

__attribute__((noinline)) static void insert(long self)
{
    long start = now_ns();
    pthread_rwlock_wrlock(&index_lock);
    waited[self] += now_ns() - start;
    nap_ms(8);
    pthread_rwlock_unlock(&index_lock);
}

static void *worker(void *self)
{
    for (int round = 0; round < ROUNDS; round++)
        insert((long)self);
    return NULL;
}

int main(void)
{
    run_threads(THREADS, worker);
    tell_size(most(waited, THREADS));
    return 0;
}
