/* A pool that grows: each thread starts later than the one before it, and all end together. Those
 * that had more time did more.
 * Expected: nothing. */
#include "known.h"

static volatile int done;

static void *worker(void *argument)
{
    while (!done)
        known_parse(4 * MS);
    return argument;
}

int main(void)
{
    pthread_t threads[6];
    for (int i = 0; i < 6; i++) {
        pthread_create(&threads[i], NULL, worker, NULL);
        known_pack(80 * MS);
    }
    done = 1;
    for (int i = 0; i < 6; i++)
        pthread_join(threads[i], NULL);
}
