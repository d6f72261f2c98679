/* Five threads meet at a barrier, and one always comes late.
 * Expected: barrier-straggler, known_parse, that thread; its excess over the median. */
#include "known.h"

static pthread_barrier_t barrier;
static long took[5];

static void *worker(void *argument)
{
    long self = (long)argument;
    for (int round = 0; round < 10; round++) {
        known_parse(self == 1 ? 30 * MS : 10 * MS);
        pthread_barrier_wait(&barrier);
    }
    took[self] = known_log(KNOWN_PARSE)->total;
    if (self == 1)
        tell("thread", own_tid());
    return NULL;
}

int main(void)
{
    pthread_barrier_init(&barrier, NULL, 5);
    run_threads(5, worker);
    tell_slow(took, 5, 1);
}
