/* Makes calls on a thread with the smallest stack there is, of which so many bytes are in use.
 * usage: small_stack BYTES CALLS */
#define _GNU_SOURCE
#include "trap.h"

#include <alloca.h>
#include <limits.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

struct work {
    size_t bytes;
    long calls;
    long sum;
};

static void *use(void *argument)
{
    struct work *work = argument;
    volatile char *area = alloca(work->bytes);
    for (size_t i = 0; i < work->bytes; i++)
        area[i] = 1;
    for (long i = 0; i < work->calls; i++)
        work->sum += trap_add(i, area[i % work->bytes]) + (getppid() > 0);
    return NULL;
}

int main(int argc, char **argv)
{
    (void)argc;
    struct work work = { strtoul(argv[1], NULL, 10), strtol(argv[2], NULL, 10), 0 };
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    if (pthread_attr_setstacksize(&attributes, PTHREAD_STACK_MIN) != 0)
        return 1;
    pthread_t thread;
    if (pthread_create(&thread, &attributes, use, &work) != 0)
        return 2;
    pthread_join(thread, NULL);
    printf("%ld\n", work.sum);
    return 0;
}
