/* A library with one lock for all. */
#include "known.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

long store_put(long ns)
{
    long start = known_now();
    pthread_mutex_lock(&lock);
    long waited = known_now() - start;
    known_pack(ns);
    pthread_mutex_unlock(&lock);
    return waited;
}
