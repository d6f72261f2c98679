/* Callbacks nested deeper than any fixed stack of frames; and, at the bottom, a longjmp over all.
 * usage: deep DEPTH */
#include "trap.h"

#include <pthread.h>
#include <setjmp.h>

static jmp_buf top;
static bool jump;

static long callback(long depth)
{
    if (depth == 0) {
        trap_empty();
        if (jump)
            longjmp(top, 1);
        return 0;
    }
    return trap_nest(depth - 1, callback);
}

static void *run(void *argument)
{
    long depth = (long)argument;
    printf("returned %ld\n", trap_nest(depth - 1, callback));
    jump = true;
    if (setjmp(top) == 0)
        trap_nest(depth - 1, callback);
    else
        puts("jumped");
    for (int i = 0; i < 1000; i++)
        trap_empty();
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    CHECK(pthread_attr_setstacksize(&attributes, 512 << 20) == 0);
    pthread_t thread;
    CHECK(pthread_create(&thread, &attributes, run, (void *)atol(argv[argc - 1])) == 0);
    pthread_join(thread, NULL);
    return 0;
}
