/* Calls functions that a preloaded library wraps by RTLD_NEXT. */
#include "trap.h"

#include <unistd.h>

int main(void)
{
    long sum = 0;
    for (int i = 0; i < 100; i++)
        sum = trap_add(sum, 1);
    printf("sum %ld parent %d wrapped %ld\n", sum, getppid(), trap_leaf(0));
    return 0;
}
