// One of four workers prints as many numbers as the others, with three times as many digits into the same space.
// cause: slow-threads
// also: too-many-threads
// group: worker
// site: run_threads planted.h
// says: snprintf
// says: for each call against
// says: as many calls, 800
#include "planted.h"

static void *worker(void *self)
{
    char text[16384];
    int digits = (long)self == 2 ? 12000 : 4000;
    for (int number = 1; number <= 800; number++)
        snprintf(text, sizeof text, "%.*f", digits, 1.0 / number);
    return NULL;
}

int main(void)
{
    run_threads(4, worker);
    return 0;
}
