// One of four workers clears three times as much memory in each call.
// cause: slow-threads
// also: too-many-threads
// group: worker
// site: run_threads planted.h
// says: memset
// says: more to do in each call: 3
// says: as many calls, 2000
#include "planted.h"

static void *worker(void *self)
{
    size_t size = ((long)self == 2 ? 3 : 1) << 20;
    char *memory = malloc(size);
    for (int round = 0; round < 2000; round++)
        memset(memory, round, size);
    free(memory);
    return NULL;
}

int main(void)
{
    run_threads(4, worker);
    return 0;
}
