/* One call of known_pack in a thousand takes a hundred times as long, in each of two threads; the
 * first is not among them.
 * Expected: rare-slow-calls, known_pack, both threads; the larger excess. */
#include "known.h"

static long excess[2];

static void *worker(void *argument)
{
    long self = (long)argument;
    tell("thread", own_tid());
    for (int call = 1; call <= 2000; call++)
        known_pack(call % 1000 == 700 ? 40 * MS : 400 * US);
    excess[self] = known_excess(known_log(KNOWN_PACK));
    return NULL;
}

int main(void)
{
    run_threads(2, worker);
    tell("saves_ns", excess[0] > excess[1] ? excess[0] : excess[1]);
}
