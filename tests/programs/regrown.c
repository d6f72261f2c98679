/* A library that is rebuilt with more imports while the program runs: its old slots, and those of
   other libraries, must go on meaning what they meant. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

static void run(void *library, const char *name)
{
    ((void (*)(void))dlsym(library, name))();
}

int main(int argc, char **argv)
{
    char command[4096];
    if (argc != 5)
        return 2;
    const char *place = argv[1], *small = argv[2], *large = argv[3], *other = argv[4];
    snprintf(command, sizeof command, "cp '%s' '%s'", small, place);
    if (system(command) != 0)
        return 3;
    void *plugin = dlopen(place, RTLD_NOW);
    run(plugin, "run");
    void *neighbour = dlopen(other, RTLD_NOW);
    run(neighbour, "run");
    dlclose(plugin);
    snprintf(command, sizeof command, "cp '%s' '%s.new' && mv '%s.new' '%s'", large, place, place, place);
    if (system(command) != 0)
        return 3;
    plugin = dlopen(place, RTLD_NOW);
    run(plugin, "run");
    run(neighbour, "run");
    return 0;
}
