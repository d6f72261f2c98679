/* Four threads do all of their work under one lock.
 * Expected: serialising-lock, pthread_mutex_lock, those that wait; the longest wait. */
#include "known.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long waited[4];

static void *worker(void *argument)
{
    long self = (long)argument;
    for (int call = 0; call < 25; call++) {
        long start = known_now();
        pthread_mutex_lock(&lock);
        waited[self] += known_now() - start;
        known_parse(3 * MS);
        pthread_mutex_unlock(&lock);
        usleep(100);
    }
    return NULL;
}

int main(void)
{
    run_threads(4, worker);
    long most = 0;
    for (int i = 0; i < 4; i++)
        most = waited[i] > most ? waited[i] : most;
    tell("saves_ns", most);
}
