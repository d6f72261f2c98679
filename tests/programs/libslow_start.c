/* A library that takes its time to start. */
#include <time.h>

int is_started;

__attribute__((constructor)) static void start(void)
{
    struct timespec time = {0, 120000000}, left;
    while (nanosleep(&time, &left))
        time = left;
    is_started = 1;
}
