/* A main loop that calls sources by pointer and works itself in between; and, loaded as a plug-in, a function. */
#include "spin.h"

typedef int (*source)(void *);

void spin_loop(source *sources, int count, void *data, unsigned long own)
{
    int left = count;
    while (left) {
        left = 0;
        for (int i = 0; i < count; i++) {
            spin(own);
            left += sources[i](data);
        }
    }
}

void spin_plugin(unsigned long rounds)
{
    spin(rounds);
}
