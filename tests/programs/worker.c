/* Loads a library whose constructor starts a thread, lets that work, and waits for it. usage: worker LIBRARY */
#include "trap.h"

#include <dlfcn.h>

int main(int argc, char **argv)
{
    CHECK(argc == 2);
    void *library = dlopen(argv[1], RTLD_NOW);
    CHECK(library);
    trap_leaf(1);
    void (*end)(void) = (void (*)(void))dlsym(library, "worker_end");
    CHECK(end);
    end();
    puts("done");
    return 0;
}
