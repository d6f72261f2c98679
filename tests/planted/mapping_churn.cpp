// Each item maps a region, fills it, and unmaps it.
// cause: mapping-churn
// also: rare-slow-calls
// says: munmap
#include <sys/mman.h>
#include "planted.h"

int main()
{
    const long size = 128 << 10;
    for (int item = 0; item < 15000; item++) {
        char *region = (char *)mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        region[0] = 1;
        munmap(region, size);
    }
}
