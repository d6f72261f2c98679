/* One library function is called for each small thing.
 * Expected: many-tiny-calls, known_tiny, the main thread; the time of as many calls that are not
 * hooked, made through a pointer in turns with the others. (What the function would measure of itself
 * lacks its first and last instructions, which are 5 % of so little.) */
#include <dlfcn.h>
#include "known.h"

enum { TURNS = 100, CALLS = 4000 };

int main(void)
{
    void *library = dlopen("libknown.so", RTLD_LAZY | RTLD_NOLOAD);
    void (*tiny)(void) = (void (*)(void))dlsym(library, "known_tiny");
    long saves = 0;
    for (int turn = 0; turn < TURNS; turn++) {
        for (int call = 0; call < CALLS; call++)
            known_tiny();
        long start = known_now();
        for (int call = 0; call < CALLS; call++)
            tiny();
        saves += known_now() - start;
    }
    tell("thread", own_tid());
    tell("saves_ns", saves);
}
