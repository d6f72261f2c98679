/* Two versions of one symbol, and a weak symbol that nothing provides. */
#include "trap.h"

__asm__(".symver old_version, trap_versioned@TRAP_1\n");
int old_version(void);
int trap_versioned(void);
void trap_missing(void) __attribute__((weak));

int main(void)
{
    int sum = 0;
    for (int i = 0; i < 30; i++)
        sum += old_version();
    for (int i = 0; i < 50; i++)
        sum += trap_versioned();
    if (trap_missing)
        trap_missing();
    printf("sum %d, missing is %s\n", sum, trap_missing ? "there" : "missing");
    return 0;
}
