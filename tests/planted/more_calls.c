// One of four workers prints three times as many numbers.
// cause: slow-threads
// also: too-many-threads
// group: worker
// site: run_threads planted.h
// says: snprintf
// says: (2400 calls against 800)
#include "planted.h"

static void *worker(void *self)
{
    char text[4096];
    long count = (long)self == 2 ? 2400 : 800;
    for (long number = 1; number <= count; number++)
        snprintf(text, sizeof text, "%.4000f", 1.0 / (double)number);
    return NULL;
}

int main(void)
{
    run_threads(4, worker);
    return 0;
}
