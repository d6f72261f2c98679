// Very many cheap calls, each of which is needed.
// cause: none
// flags: -lm
#include <math.h>
#include "planted.h"

int main(void)
{
    volatile double sum = 0;
    for (int i = 0; i < 6000000; i++)
        sum += cos(i);
    return 0;
}
