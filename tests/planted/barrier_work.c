// One of three threads has ten times as much to do between barriers.
// cause: barrier-straggler
// says: in its own code
// group: worker
// object: phase
// site: worker barrier_work.c:
#include "planted.h"

enum { THREADS = 3, STEPS = 15 };

pthread_barrier_t phase;

static void *worker(void *self)
{
    long number = (long)self;
    for (int step = 0; step < STEPS; step++) {
        work(number == 2 ? 4000000 : 400000);
        pthread_barrier_wait(&phase);
    }
    return NULL;
}

int main(void)
{
    pthread_barrier_init(&phase, NULL, THREADS);
    run_threads(THREADS, worker);
    return 0;
}
