// What is not there is looked for again for each item.
// cause: looked-up-again
// object: overrides.conf
// site: override_of missing_file.c
// says: in vain
#include <sys/stat.h>
#include "planted.h"

enum { ITEMS = 1000000 };

__attribute__((noinline)) static int override_of(int item)
{
    struct stat about;
    return stat("overrides.conf", &about) ? item : 0;
}

int main(void)
{
    unsigned sum = 0;
    for (int item = 0; item < ITEMS; item++)
        sum += override_of(item);
    return sum == 0;
}
