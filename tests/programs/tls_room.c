/* Loads a library that wants its thread-local storage beside that of the program.
 * usage: tls_room LIBRARY */
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    void *library = argc == 2 ? dlopen(argv[1], RTLD_NOW) : NULL;
    puts(library ? "loaded" : dlerror());
    return library == NULL;
}
