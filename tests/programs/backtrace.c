/* backtrace() in a callback of a callback: all frames of the program must be there. */
#define _GNU_SOURCE
#include "trap.h"

#include <dlfcn.h>
#include <execinfo.h>
#include <string.h>

__attribute__((noinline)) void show_stack(void)
{
    void *frames[64];
    int count = backtrace(frames, 64);
    for (int i = 0; i < count; i++) {
        Dl_info info = {0};
        CHECK(dladdr((char *)frames[i] - 1, &info));
        const char *file = strrchr(info.dli_fname, '/');
        if (file && strcmp(file, "/libchase.so") == 0)
            continue;
        printf("%s\n", info.dli_sname ? info.dli_sname : "?");
    }
}

__attribute__((noinline)) int in_sort(const void *a, const void *b)
{
    if (*(const int *)a == 1 && *(const int *)b == 2)
        show_stack();
    __asm__ volatile("");
    return *(const int *)a - *(const int *)b;
}

__attribute__((noinline)) void in_callback(void *argument)
{
    int numbers[] = {1, 2};
    qsort(numbers, 2, sizeof(int), in_sort);
    *(int *)argument = numbers[1];
}

__attribute__((noinline)) void outer(void)
{
    int result = 0;
    trap_call(in_callback, &result);
    printf("result %d\n", result);
}

int main(void)
{
    outer();
    return 0;
}
