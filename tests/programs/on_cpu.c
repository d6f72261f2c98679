/* Time on the CPU in known shares: in a callback of the C library, in one of a loop in a library, in a plug-in. */
#include "spin.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

void spin_loop(int (**sources)(void *), int count, void *data, unsigned long own);

static int by_value(const void *a, const void *b)
{
    int x = *(const int *)a, y = *(const int *)b;
    spin(500);
    return x < y ? -1 : x > y;
}

static void sort(void)
{
    enum { COUNT = 130000 };
    int *values = malloc(COUNT * sizeof(*values));
    unsigned state = 1;
    for (int i = 0; i < COUNT; i++)
        values[i] = (int)((state = state * 1664525 + 1013904223) >> 1);
    qsort(values, COUNT, sizeof(*values), by_value);
    free(values);
}

static int turn(void *data)
{
    int *left = data;
    spin(750);
    return --*left > 0;
}

static void loop(void)
{
    int (*sources[])(void *) = {turn, turn};
    int left = 1200000;
    spin_loop(sources, 2, &left, 250);
}

static int plugin(const char *path)
{
    void *library = dlopen(path, RTLD_NOW);
    if (!library)
        return 1;
    void (*work)(unsigned long) = (void (*)(unsigned long))dlsym(library, "spin_plugin");
    for (int i = 0; i < 1200000; i++) {
        spin(400);
        work(600);
    }
    return 0;
}

static int last(void *data)
{
    (void)data;
    return 0;
}

/* The program's own code, then a wait, then the library's: some 300 ms each. */
static void phases(void)
{
    struct timespec start, now;
    int (*sources[])(void *) = {last};
    for (int phase = 0; phase < 2; phase++) {
        clock_gettime(CLOCK_MONOTONIC, &start);
        do {
            if (phase == 0)
                spin(100000);
            else
                spin_loop(sources, 1, NULL, 100000);
            clock_gettime(CLOCK_MONOTONIC, &now);
        } while ((now.tv_sec - start.tv_sec) * 1000 + (now.tv_nsec - start.tv_nsec) / 1000000 < 300);
        if (phase == 0)
            usleep(20000);
    }
}

/* on_cpu sort|loop|phases|plugin PLUGIN: leaves the process's time on the CPU, in nanoseconds, in the file "taken". */
int main(int count, char **arguments)
{
    struct rusage usage;
    int result = 0;
    if (count < 3)
        return 2;
    if (!strcmp(arguments[1], "sort"))
        sort();
    else if (!strcmp(arguments[1], "loop"))
        loop();
    else if (!strcmp(arguments[1], "phases"))
        phases();
    else
        result = plugin(arguments[2]);
    getrusage(RUSAGE_SELF, &usage);
    FILE *taken = fopen("taken", "w");
    if (!taken)
        return 3;
    long microseconds = (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000 +
                        usage.ru_utime.tv_usec + usage.ru_stime.tv_usec;
    fprintf(taken, "ns %ld000\n", microseconds);
    fclose(taken);
    return result;
}
