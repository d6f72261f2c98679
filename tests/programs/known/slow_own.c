/* One of six threads takes longer in the program's own code, between the same library calls.
 * Expected: slow-threads, no API, that thread. */
#include "known.h"

#include <time.h>

static long took[6];

/* Sleeps without a library call. */
static void own(long ns)
{
    struct timespec t = {0, ns};
    long result;
    __asm__ volatile("syscall" : "=a"(result) : "0"(35), "D"(&t), "S"(0L) : "rcx", "r11", "memory");
}

static void *worker(void *argument)
{
    long self = (long)argument, start = known_now();
    for (int call = 0; call < 10; call++) {
        known_parse(5 * MS);
        own(self == 4 ? 25 * MS : 5 * MS);
    }
    took[self] = known_now() - start - known_log(KNOWN_PARSE)->total;
    if (self == 4)
        tell("thread", own_tid());
    return NULL;
}

int main(void)
{
    run_threads(6, worker);
    tell_slow(took, 6, 4);
}
