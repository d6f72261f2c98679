/* Recursion through PLTs: within a library, between two, and into the program and back. */
#include "trap.h"

long trap_even(long n);
long trap_ping(long n);
long trap_use_interposed(long n);

long trap_interposed(long n) { return n == 0 ? 0 : 1 + trap_use_interposed(n - 1); }

int main(void)
{
    printf("even %ld\n", trap_even(1000));
    printf("ping %ld\n", trap_ping(1000));
    printf("interposed %ld\n", trap_use_interposed(500));
    return 0;
}
