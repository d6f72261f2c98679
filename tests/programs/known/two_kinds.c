/* Behind one start routine, six threads parse and four pack; none is slower than its like.
 * Expected: sub-groups, no API, all ten; nothing is lost. */
#include "known.h"

static void *worker(void *argument)
{
    for (int call = 0; call < 20; call++) {
        if ((long)argument % 5 < 3)
            known_parse(10 * MS);
        else
            known_pack(20 * MS);
    }
    return NULL;
}

int main(void)
{
    run_threads(10, worker);
    tell("saves_ns", 0);
}
