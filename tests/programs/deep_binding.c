/* A library loaded with RTLD_DEEPBIND prefers its own functions to the program's. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>

const char *who(void)
{
    return "the program";
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        void *library = dlopen(argv[i], RTLD_LAZY | RTLD_DEEPBIND);
        if (!library)
            return 1;
        ((void (*)(void))dlsym(library, "run"))();
    }
    puts(who());
    return 0;
}
