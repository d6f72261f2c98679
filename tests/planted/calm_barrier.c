// Two threads that do the same between barriers.
// cause: none
#include "planted.h"

static pthread_barrier_t phase;

static void *worker(void *argument)
{
    for (int step = 0; step < 8; step++) {
        nap_ms(30);
        pthread_barrier_wait(&phase);
    }
    return argument;
}

int main(void)
{
    pthread_barrier_init(&phase, NULL, 2);
    run_threads(2, worker);
    return 0;
}
