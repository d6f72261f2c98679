/* dlopen whose search depends on who calls it: the RUNPATH of the program, that of a library, and
 * $ORIGIN of each. Whoever stands between caller and dlopen breaks it. */
#include "trap.h"

#include <dlfcn.h>

void *search_in_own_runpath(void);
void *search_by_origin(void);

static void show(const char *what, void *handle)
{
    int (*number)(void) = handle ? (int (*)(void))dlsym(handle, "plugin_number") : NULL;
    long (*work)(long) = handle ? (long (*)(long))dlsym(handle, "plugin_work") : NULL;
    printf("%s: %d %s\n", what, number ? number() : -1, work && work(10) ? "works" : "");
    if (!handle)
        puts(dlerror());
}

static void in_callback(void *argument)
{
    show(argument, dlopen("libonly_program.so", RTLD_NOW));
}

int main(void)
{
    show("program", dlopen("libonly_program.so", RTLD_NOW));
    show("not the program's", dlopen("libonly_library.so", RTLD_NOW));
    show("library", search_in_own_runpath());
    show("library's origin", search_by_origin());
    trap_call(in_callback, "callback");
    return 0;
}
