/* IFUNC symbols: the slot must get the implementation and never the resolver.
 * usage: ifunc ROUNDS */
#include "trap.h"

#include <string.h>

int trap_ifunc(int a);
unsigned long trap_length(const char *text);

int main(int argc, char **argv)
{
    long rounds = atol(argv[argc - 1]), sum = 0;
    char text[] = "seven..";
    for (long i = 0; i < rounds; i++) {
        sum += trap_ifunc((int)i);
        sum += (long)strlen(text) + (long)trap_length(text);
        sum += memcmp(text, "seven..", 7);
    }
    printf("sum %ld\n", sum);
    return 0;
}
