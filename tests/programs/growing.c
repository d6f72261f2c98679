/* Threads that call functions all the time, while more and more libraries are loaded, whose functions they call too.
 * usage: growing PROVIDER LIBRARIES FILE, with ./caller0.so and so on */
#include "trap.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>

enum { THREADS = 3, MANY = 256, CALLS = 100 };

static long (*_Atomic functions[MANY])(long);
static atomic_long loaded, leaves, called, wrong;
static atomic_bool done;

static void *call(void *argument)
{
    long number = (long)argument, own_leaves = 0, own_called = 0;
    while (!done) {
        for (long i = 0; i < CALLS; i++)
            wrong += trap_leaf(i) != 12 * i + 66;
        own_leaves += CALLS;
        if (loaded > 0) {
            functions[number++ % loaded](CALLS);
            own_called += CALLS;
        }
    }
    leaves += own_leaves, called += own_called;
    return NULL;
}

int main(int argc, char **argv)
{
    CHECK(argc == 4);
    long libraries = atol(argv[2]);
    CHECK(libraries <= MANY && dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL) != NULL);
    pthread_t threads[THREADS];
    for (long i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, call, (void *)i) == 0);
    for (long i = 0; i < libraries; i++) {
        char path[64];
        snprintf(path, sizeof path, "./caller%ld.so", i);
        void *library = dlopen(path, RTLD_NOW);
        CHECK(library != NULL);
        functions[i] = (long (*)(long))dlsym(library, "call_often");
        loaded++;
    }
    done = true;
    for (long i = 0; i < THREADS; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    printf("wrong %ld\n", wrong);
    trap_tell(argv[3], "leaves", leaves);
    trap_tell(argv[3], "called", called);
    return 0;
}
