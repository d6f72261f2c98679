// One of four workers gets three times the input.
// cause: slow-threads
// also: too-many-threads
// group: worker
#include "planted.h"

static volatile unsigned long sums[4];

static void *worker(void *self)
{
    long number = (long)self;
    for (int item = 0; item < (number == 2 ? 90 : 30); item++)
        sums[number] += work(700000);
    return NULL;
}

int main(void)
{
    run_threads(4, worker);
    return 0;
}
