/* One function is called through an entry that is no jump slot; others through jump slots, if not
 * built without. With LARGE, there is more code than is searched for that one alone. */
#include "trap.h"

__attribute__((noplt)) long trap_add(long a, long b);

#ifdef LARGE
__asm__(".text\n.skip 1 << 20, 0x90\n");
#endif

static void nothing(void *argument)
{
    (void)argument;
}

int main(void)
{
    long sum = 0;
    for (int i = 0; i < 100; i++) {
        sum = trap_add(sum, i);
        trap_empty();
        trap_call(nothing, NULL);
    }
    printf("%ld %d %d %p\n", sum, trap_errno(1), (int)trap_mul128(2, 3), (void *)NULL);
    fflush(stdout);
    return fclose(stdout);
}
