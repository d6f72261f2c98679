// Two threads of OpenMP share parallel regions; the second one has three quarters of the work. The first one waits at the end of each
// region. (For some milliseconds of each wait it spins: that is the runtime's own time, and no wait.)
// cause: limiting-stage
// site: assemble uneven_region.c
// says: has a larger part of parallel regions than main of
// says: which has done its own and waits
// flags: -fopenmp
#include "planted.h"
#include <omp.h>

enum { REGIONS = 20, PARTS = 8 };

__attribute__((noinline)) static void assemble(void)
{
#pragma omp parallel num_threads(2)
    for (int part = 0; part < (omp_get_thread_num() ? PARTS - 2 : 2); part++)
        work(4000000);
}

int main(void)
{
    for (int region = 0; region < REGIONS; region++)
        assemble();
    return 0;
}
