// A frame every 8 ms, by the clock, and a quarter of that to draw it: the sleep between frames is no poll.
// cause: none
#include "planted.h"

enum { FRAMES = 60, PERIOD = 8000000, DRAW = 2000000 };

/* Draws for as long as it takes, on the processor. */
static void draw(void)
{
    struct timespec now;
    long until = -1, at;
    do {
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
        at = now.tv_sec * 1000000000L + now.tv_nsec;
        if (until < 0)
            until = at + DRAW;
        work(10000);
    } while (at < until);
}

int main(void)
{
    struct timespec next;
    clock_gettime(CLOCK_MONOTONIC, &next);
    for (int frame = 0; frame < FRAMES; frame++) {
        draw();
        next.tv_nsec += PERIOD;
        if (next.tv_nsec >= 1000000000) {
            next.tv_nsec -= 1000000000;
            next.tv_sec++;
        }
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, NULL);
    }
    return 0;
}
