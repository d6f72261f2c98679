// One of four threads comes last to each barrier, because it waits for something outside.
// cause: late-at-barrier
// group: worker
// object: step
// site: worker barrier_sleeper.c
// waker: in pthread_barrier_wait
// size: told
#include "planted.h"

enum { THREADS = 4, STEPS = 12 };

pthread_barrier_t step;
static long waited[THREADS];

static void *worker(void *self)
{
    long number = (long)self;
    for (int i = 0; i < STEPS; i++) {
        if (number == 1)
            nap_ms(20);
        long start = now_ns();
        pthread_barrier_wait(&step);
        if (number != 1)
            waited[number] += now_ns() - start;
    }
    return NULL;
}

int main(void)
{
    pthread_barrier_init(&step, NULL, THREADS);
    run_threads(THREADS, worker);
    tell_size(most(waited, THREADS));
    return 0;
}
