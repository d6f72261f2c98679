// A convoy on a mutex that is asked for with a limit of time.
// cause: serialising-lock
// object: gate
// site: enter convoy_timed.c
// holder: worker, in nanosleep
// size: told
#include "planted.h"

enum { THREADS = 4, ROUNDS = 10 };

pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
static long waited[THREADS];

__attribute__((noinline)) static void enter(long self)
{
    long start = now_ns();
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 30;
    if (pthread_mutex_timedlock(&gate, &until))
        exit(1);
    waited[self] += now_ns() - start;
    nap_ms(8);
    pthread_mutex_unlock(&gate);
}

static void *worker(void *self)
{
    for (int round = 0; round < ROUNDS; round++)
        enter((long)self);
    return NULL;
}

int main(void)
{
    run_threads(THREADS, worker);
    tell_size(most(waited, THREADS));
    return 0;
}
