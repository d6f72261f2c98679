/* Loads a library that only its own RUNPATH finds, and one by $ORIGIN. */
#include <dlfcn.h>
#include <stddef.h>

void *search_in_own_runpath(void);
void *search_by_origin(void);

void *search_in_own_runpath(void) { return dlopen("libonly_library.so", RTLD_NOW); }
void *search_by_origin(void) { return dlopen("$ORIGIN/deeper/libonly_library.so", RTLD_NOW); }
