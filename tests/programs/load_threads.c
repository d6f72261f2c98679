/* Threads that load, use and unload libraries while others call and look at what is loaded.
 * usage: load_threads ROUNDS PLUGIN1 PLUGIN2 SPAWNING */
#define _GNU_SOURCE
#include "trap.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>

static long rounds;
static volatile bool stop;

static void *load(void *path)
{
    for (long i = 0; i < rounds; i++) {
        void *handle = dlopen(path, i % 2 ? RTLD_NOW : RTLD_LAZY);
        CHECK(handle);
        long (*work)(long) = (long (*)(long))dlsym(handle, "plugin_work");
        if (work)
            work(10);
        CHECK(dlclose(handle) == 0);
    }
    return NULL;
}

static int look(struct dl_phdr_info *info, size_t size, void *argument)
{
    (void)info, (void)size;
    trap_leaf(1);
    ++*(long *)argument;
    return 0;
}

static void *iterate(void *argument)
{
    long seen = 0;
    while (!stop)
        dl_iterate_phdr(look, &seen);
    CHECK(seen > 0);
    return argument;
}

int main(int argc, char **argv)
{
    CHECK(argc == 5);
    rounds = atol(argv[1]);
    pthread_t loaders[6], iterator;
    CHECK(pthread_create(&iterator, NULL, iterate, NULL) == 0);
    for (int i = 0; i < 6; i++)
        CHECK(pthread_create(&loaders[i], NULL, load, argv[2 + i % 3]) == 0);
    for (int i = 0; i < 6; i++)
        pthread_join(loaders[i], NULL);
    stop = true;
    pthread_join(iterator, NULL);
    puts("all loaded and unloaded");
    return 0;
}
