/* A C library in a namespace of its own shares the places of thread-specific data with the first. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    void *library = argc > 1 ? dlmopen(LM_ID_NEWLM, argv[1], RTLD_NOW) : NULL;
    if (!library) {
        puts(dlerror());
        return 1;
    }
    void (*run)(void) = (void (*)(void))dlsym(library, "run");
    run();
    run();
    return 0;
}
