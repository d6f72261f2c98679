// Threads share one arena of the allocator, and one of them keeps it for long: it copies large blocks inside.
// cause: allocator-contention
// group: worker
// also: slow-threads
// also: many-tiny-calls
// also: limiting-stage
// also: too-many-threads
// also: rare-slow-calls
#include <malloc.h>
#include "planted.h"

enum { SIZE = 48 << 20, ROUNDS = 8 };

static atomic_int done;
static atomic_long taken;

static void *worker(void *argument)
{
    while (!done) {
        void *small = malloc(4000);
        taken++;
        free(small);
    }
    return argument;
}

static void *grower(void *argument)
{
    char *block = malloc(SIZE);
    memset(block, 1, SIZE);
    for (int round = 1; round <= ROUNDS; round++) {
        /* Not before others have been there, so that they come back while it copies. */
        for (long before = taken; taken < before + 10;)
            usleep(100);
        /* With something behind it, it can't grow where it is. */
        while ((char *)malloc(1 << 20) < block)
            ;
        block = realloc(block, SIZE + round * 8192L);
    }
    done = 1;
    free(block);
    return argument;
}

int main(void)
{
    mallopt(M_ARENA_MAX, 1);
    mallopt(M_MMAP_THRESHOLD, 1 << 30);
    mallopt(M_TRIM_THRESHOLD, 1 << 30);
    pthread_t threads[3];
    for (int i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, i ? worker : grower, NULL);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
