/* Calls eight functions of a library inside of each other, in each order that some of them can have, and so each call is in a
 * context of its own. Says how many there were. */
#include "contexts.h"

#include <stdio.h>

static long made;

/* One bit for each of those that are open. */
static void go_on(long open)
{
#define CALL(number)                                                                              \
    if (!(open >> number & 1)) {                                                                  \
        made++;                                                                                   \
        back_##number(go_on, open | 1L << number);                                                \
    }
    EACH(CALL)
}

int main(void)
{
    go_on(0);
    printf("%ld\n", made);
    return 0;
}
