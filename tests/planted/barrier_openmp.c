// One of four threads of OpenMP comes last to each barrier: the barrier is no lock, though each thread may end waits of the others.
// cause: late-at-barrier
// site: barrier_openmp.c
// waker: in GOMP_barrier
// flags: -fopenmp
#include "planted.h"
#include <omp.h>

enum { THREADS = 4, STEPS = 30 };

int main(void)
{
#pragma omp parallel num_threads(THREADS)
    for (int i = 0; i < STEPS; i++) {
        if (omp_get_thread_num() == 2)
            nap_ms(10);
#pragma omp barrier
    }
    return 0;
}
