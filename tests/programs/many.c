/* Many of one kind: threads that are all there at once, or one after the other, or children one after the other; with calls
 * in each.
 * usage: many threads|sequence|forks COUNT CALLS */
#include "trap.h"

#include <pthread.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static pthread_barrier_t barrier;
static long count, calls;

static void call(void)
{
    for (long i = 0; i < calls; i++)
        trap_add(i, 1);
}

static void *thread(void *argument)
{
    pthread_barrier_wait(&barrier);
    call();
    return argument;
}

static void *brief(void *argument)
{
    call();
    return argument;
}

int main(int argc, char **argv)
{
    CHECK(argc == 4);
    count = atol(argv[2]);
    calls = atol(argv[3]);
    if (strcmp(argv[1], "threads") == 0) {
        pthread_t *threads = calloc((size_t)count, sizeof *threads);
        pthread_attr_t attributes;
        pthread_attr_init(&attributes);
        pthread_attr_setstacksize(&attributes, 64 << 10);
        pthread_barrier_init(&barrier, NULL, (unsigned)count);
        for (long i = 0; i < count; i++)
            CHECK(pthread_create(&threads[i], &attributes, thread, NULL) == 0);
        for (long i = 0; i < count; i++)
            pthread_join(threads[i], NULL);
    } else if (strcmp(argv[1], "sequence") == 0) {
        for (long i = 0; i < count; i++) {
            pthread_t thread;
            CHECK(pthread_create(&thread, NULL, brief, NULL) == 0);
            pthread_join(thread, NULL);
        }
    } else {
        for (long i = 0; i < count; i++) {
            pid_t child = fork();
            if (child == 0) {
                call();
                _exit(0);
            }
            int status;
            CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0);
        }
    }
    printf("%ld\n", count);
    return 0;
}
