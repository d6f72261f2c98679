/* Its constructor starts a thread, which calls libraries, and waits for it: both while the dynamic
 * linker holds its lock. */
#include "trap.h"

#include <pthread.h>

static void *run(void *argument)
{
    for (int i = 0; i < 10; i++)
        trap_empty();
    return argument;
}

__attribute__((constructor)) static void loaded(void)
{
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, run, NULL) == 0);
    pthread_join(thread, NULL);
}
