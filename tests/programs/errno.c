/* errno across library calls, first ones (which may do more work) and later ones, in the main
 * thread and in a new one.
 * usage: errno ROUNDS */
#include "trap.h"

#include <errno.h>
#include <pthread.h>

static void in_callback(void *argument)
{
    CHECK(errno == (int)(long)argument);
    trap_empty();
    CHECK(errno == (int)(long)argument);
    errno = (int)(long)argument + 1;
}

static void *run(void *argument)
{
    errno = 0;
    int last = 0;
    for (long i = 1; i <= (long)argument; i++) {
        CHECK(trap_errno((int)i) == last);
        CHECK(errno == (int)i);
        trap_call(in_callback, (void *)i);
        CHECK(errno == (int)i + 1);
        last = (int)i + 1;
    }
    return NULL;
}

int main(int argc, char **argv)
{
    void *rounds = (void *)atol(argv[argc - 1]);
    run(rounds);
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, run, rounds) == 0);
    pthread_join(thread, NULL);
    puts("errno kept");
    return 0;
}
