/* Addresses of library functions, taken by the program, by the library itself and by dlsym, must
 * be one address; calls through them must arrive. In a program that is not position-independent
 * that address is one of the program's own PLT. */
#define _GNU_SOURCE
#include "trap.h"

#include <dlfcn.h>
#include <stdlib.h>

/* A relocation in data. */
static void (*const in_data)(void) = trap_empty;
static int (*volatile compare_memory)(const void *, const void *, size_t) = NULL;
int memcmp(const void *, const void *, size_t);

int main(void)
{
    void (*volatile taken)(void) = trap_empty;
    void *found = dlsym(RTLD_DEFAULT, "trap_empty");
    printf("data %d library %d dlsym %d\n", taken == in_data,
           (void *)taken == trap_address_of_empty(), (void *)taken == found);
    compare_memory = memcmp;
    printf("memcmp %d\n", (void *)compare_memory == dlsym(RTLD_DEFAULT, "memcmp"));
    for (int i = 0; i < 100; i++) {
        taken();
        in_data();
        trap_add(i, i);
    }
    printf("compared %d\n", compare_memory("a", "a", 1));
    return 0;
}
