/* A thousand short threads, twenty at a time, one of which takes much longer.
 * Expected: slow-threads, known_parse, that one. */
#include "known.h"

enum { TASKS = 1000, AT_ONCE = 20, SLOW = 430 };

static long took[TASKS];

static void *task(void *argument)
{
    long self = (long)argument;
    known_parse(self == SLOW ? 150 * MS : 2 * MS);
    took[self] = known_log(KNOWN_PARSE)->total;
    if (self == SLOW)
        tell("thread", own_tid());
    return NULL;
}

int main(void)
{
    for (int first = 0; first < TASKS; first += AT_ONCE) {
        pthread_t threads[AT_ONCE];
        for (long i = 0; i < AT_ONCE; i++)
            pthread_create(&threads[i], NULL, task, (void *)(first + i));
        for (int i = 0; i < AT_ONCE; i++)
            pthread_join(threads[i], NULL);
    }
    tell_slow(took, TASKS, SLOW);
}
