// A plug-in takes long to start, each time that it is loaded.
// cause: slow-loading
// group: slow_loading
// site: load_plugin slow_loading.c
// says: dlopen
// says: mostly for /
// says: libslow_start.so
// size: told
// flags: -ldl
// library: libslow_start.c
#include <dlfcn.h>
#include "planted.h"

static __attribute__((noinline)) long load_plugin(const char *path)
{
    long start = now_ns();
    void *plugin = dlopen(path, RTLD_NOW);
    long took = now_ns() - start;
    if (!plugin || !*(int *)dlsym(plugin, "is_started"))
        exit(1);
    dlclose(plugin);
    return took;
}

int main(int count, char **arguments)
{
    if (count != 2)
        return 2;
    long took = 0;
    for (int time = 0; time < 2; time++)
        took += load_plugin(arguments[1]);
    tell_size(took);
    return 0;
}
