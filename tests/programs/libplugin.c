/* A library to be loaded and unloaded; NUMBER tells one build from another. */
#include "trap.h"

#include <string.h>

long plugin_work(long rounds);
int plugin_number(void);

static long total;

__attribute__((constructor)) static void loaded(void) { total = trap_add(NUMBER, 0); }
__attribute__((destructor)) static void unloaded(void) { trap_errno((int)total); }

static void callback(void *argument) { *(long *)argument += NUMBER; }

long plugin_work(long rounds)
{
    char text[] = "text";
    for (long i = 0; i < rounds; i++) {
        trap_call(callback, &total);
        total += (long)strlen(text);
    }
    return total;
}

int plugin_number(void) { return NUMBER; }
