/* Eight threads do the same, and meet at a barrier.
 * Expected: nothing. */
#include "known.h"

static pthread_barrier_t barrier;

static void *worker(void *argument)
{
    for (int round = 0; round < 10; round++) {
        known_parse(15 * MS);
        known_pack(5 * MS + (long)argument * 10 * US);
        pthread_barrier_wait(&barrier);
    }
    return NULL;
}

int main(void)
{
    pthread_barrier_init(&barrier, NULL, 8);
    run_threads(8, worker);
}
