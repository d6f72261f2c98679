// A large block is allocated, touched and freed for each item.
// cause: mapping-churn
// also: rare-slow-calls
#include "planted.h"

int main(void)
{
    for (int item = 0; item < 60; item++) {
        char *block = malloc(64 << 20);
        for (long at = 0; at < 4 << 20; at += 4096)
            block[at] = (char)item;
        free(block);
    }
    return 0;
}
