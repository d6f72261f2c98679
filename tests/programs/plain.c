/* Needs nothing but the C library: for builds in which a preloaded library has no say. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static int compare(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }

int main(void)
{
    int numbers[] = {3, 1, 2};
    qsort(numbers, 3, sizeof(int), compare);
    printf("%d%d%d %d\n", numbers[0], numbers[1], numbers[2], geteuid());
    return 21;
}
