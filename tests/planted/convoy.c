// A convoy on one of six mutexes: it is held while something slow happens.
// cause: serialising-lock
// object: stats_mu
// site: update_stats convoy.c
// holder: worker, in nanosleep
// size: told
#include "planted.h"

enum { THREADS = 4, ROUNDS = 10 };

pthread_mutex_t stats_mu = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t others[5] = {[0 ... 4] = PTHREAD_MUTEX_INITIALIZER};
static long waited[THREADS], counts[6];

__attribute__((noinline)) static void update_stats(long self)
{
    long start = now_ns();
    pthread_mutex_lock(&stats_mu);
    waited[self] += now_ns() - start;
    counts[5]++;
    nap_ms(8);
    pthread_mutex_unlock(&stats_mu);
}

static void *worker(void *self)
{
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < 5; i++) {
            pthread_mutex_lock(&others[i]);
            counts[i]++;
            pthread_mutex_unlock(&others[i]);
        }
        update_stats((long)self);
    }
    return NULL;
}

int main(void)
{
    run_threads(THREADS, worker);
    tell_size(most(waited, THREADS));
    return 0;
}
