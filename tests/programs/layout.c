// Calls that reach the C library by every way that a linker lays out: it is linked in all of them.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int compare(const void *a, const void *b) { return strcmp(a, b); }

// In a program at a fixed address, its address is that of the linker's stub.
static size_t (*volatile measure)(const char *) = strlen;
static char texts[200][8];

int main(void) {
    long sum = 0;
    for (int i = 0; i < 1000; i++)
        sum += strtol("17", NULL, 10) + (long)measure("chase");
    for (int i = 0; i < 200; i++)
        snprintf(texts[i], sizeof texts[i], "%04d", i * 7919 % 1009);
    qsort(texts, 200, sizeof texts[0], compare);
    printf("%ld %s %s\n", sum, texts[0], texts[199]);
    return 3;
}
