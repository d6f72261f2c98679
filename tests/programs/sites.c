/* The same function, called from several lines, with callbacks in between. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static int compare(const void *a, const void *b)
{
    (void)getppid();
    return *(const int *)a - *(const int *)b;
}

__attribute__((noinline)) static void first(void)
{
    for (volatile int i = 0; i < 30; i++)
        (void)getppid();
}

__attribute__((noinline)) static void second(void)
{
    for (volatile int i = 0; i < 7; i++)
        (void)getppid();
    for (volatile int i = 0; i < 5; i++)
        (void)getppid();
}

int main(void)
{
    int numbers[2] = {2, 1};
    first();
    second();
    qsort(numbers, 2, sizeof numbers[0], compare);
    qsort(numbers, 2, sizeof numbers[0], compare);
    if (fork() == 0) {
        first();
        return 0;
    }
    first();
    wait(NULL);
    puts("done");
    return 0;
}
