/* One of THREADS threads takes longer in known_parse.
 * Expected: slow-threads, known_parse, that thread; its excess over the median thread. With WAITS
 * they sleep, and take a lock that nobody holds, between the calls, which changes nothing. */
#include "known.h"

#ifndef THREADS
#define THREADS 8
#endif
#define SLOW (THREADS / 3)

static long took[THREADS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void *worker(void *argument)
{
    long self = (long)argument;
    for (int call = 0; call < 10; call++) {
        known_parse(self == SLOW ? 30 * MS : 5 * MS);
#ifdef WAITS
        usleep(4000);
        pthread_mutex_lock(&lock);
        pthread_mutex_unlock(&lock);
#endif
    }
    known_pack(5 * MS);
    took[self] = known_log(KNOWN_PARSE)->total;
    if (self == SLOW)
        tell("thread", own_tid());
    return NULL;
}

int main(void)
{
    (void)lock;
    run_threads(THREADS, worker);
    tell_slow(took, THREADS, SLOW);
}
