/* Two libraries, loaded and unloaded in turn (the second is likely to be mapped where the first
 * was), their functions called through dlsym; then both at once.
 * usage: reload ROUNDS PLUGIN1 PLUGIN2 */
#include "trap.h"

#include <dlfcn.h>

static long with(void *handle)
{
    long (*work)(long) = (long (*)(long))dlsym(handle, "plugin_work");
    CHECK(work && work == (long (*)(long))dlsym(handle, "plugin_work"));
    CHECK(dlsym(handle, "no_such_symbol") == NULL && dlerror() != NULL);
    return work(10);
}

int main(int argc, char **argv)
{
    CHECK(argc == 4);
    long rounds = atol(argv[1]), sum = 0;
    for (long i = 0; i < rounds; i++) {
        void *handle = dlopen(argv[2 + i % 2], i % 3 ? RTLD_NOW : RTLD_LAZY);
        CHECK(handle);
        sum += with(handle);
        CHECK(dlclose(handle) == 0);
        trap_empty();
    }
    void *first = dlopen(argv[2], RTLD_LAZY | RTLD_LOCAL);
    void *second = dlopen(argv[3], RTLD_NOW | RTLD_GLOBAL);
    CHECK(first && second && dlopen(argv[2], RTLD_LAZY | RTLD_NOLOAD) == first);
    sum += with(first) + with(second);
    printf("sum %ld\n", sum);
    CHECK(dlopen("/nowhere/lib.so", RTLD_NOW) == NULL);
    puts(dlerror());
    return 0;
}
