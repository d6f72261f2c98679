// Two threads of OpenMP share parallel regions; the second one has three quarters of the work. The first one waits at the end of each
// region; half of that is lost.
// cause: limiting-stage
// site: assemble uneven_region.c
// says: has a larger part of parallel regions than main of
// says: which has done its own and waits
// size: told
// flags: -fopenmp
#include "planted.h"
#include <omp.h>

enum { REGIONS = 12, PARTS = 8 };

static long done_at[2];

static void assemble(void)
{
#pragma omp parallel num_threads(2)
    {
        // (What a part takes must not depend on who has the processors.)
        for (int part = 0; part < (omp_get_thread_num() ? PARTS - 2 : 2); part++)
            work(6000000);
        done_at[omp_get_thread_num()] = now_ns();
    }
}

int main(void)
{
    long alone = 0;
    for (int region = 0; region < REGIONS; region++) {
        assemble();
        alone += done_at[1] > done_at[0] ? done_at[1] - done_at[0] : 0;
    }
    tell_size(alone / 2);
    return 0;
}
