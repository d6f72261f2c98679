// GNU Pth: threads of one thread, switched by libpth inside of library calls and left there.
#include <pth.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int compare(const void *a, const void *b) {
    pth_yield(NULL);
    return *(const int *)a - *(const int *)b;
}

static void *sort(void *seed) {
    int numbers[50];
    for (int i = 0; i < 50; i++)
        numbers[i] = ((int)(long)seed + i) * 7919 % 1009;
    qsort(numbers, 50, sizeof *numbers, compare);
    long sum = 0;
    for (int i = 0; i < 50; i++)
        sum += (long)numbers[i] * i;
    return (void *)sum;
}

static int leaving(const void *a, const void *b) {
    (void)a, (void)b;
    pth_yield(NULL);
    pth_exit((void *)5L);
    return 0;
}

static void *leave(void *unused) {
    (void)unused;
    int numbers[] = { 3, 1, 2 };
    qsort(numbers, 3, sizeof *numbers, leaving);
    return NULL;
}

static int waiting(const void *a, const void *b) {
    (void)a, (void)b;
    pth_nap(pth_time(1000, 0));
    return 0;
}

static void *cancelled(void *unused) {
    (void)unused;
    int numbers[] = { 3, 1, 2 };
    qsort(numbers, 3, sizeof *numbers, waiting);
    return NULL;
}

static long joined(pth_t thread) {
    void *value;
    return pth_join(thread, &value) ? (long)value : -100;
}

int main(void) {
    pth_init();
    long sum = 0;
    pth_t threads[60];
    for (long i = 0; i < 60; i++)
        threads[i] = pth_spawn(PTH_ATTR_DEFAULT, i % 3 == 2 ? leave : sort, (void *)i);
    for (int i = 0; i < 60; i++)
        sum += joined(threads[i]);
    printf("%ld\n", sum);
    long ended = 0;
    for (int i = 0; i < 200; i++) {
        pth_t thread = pth_spawn(PTH_ATTR_DEFAULT, cancelled, NULL);
        pth_yield(thread);
        pth_cancel(thread);
        ended += joined(thread) == (long)PTH_CANCELED;
    }
    printf("%ld\n", ended);
    fflush(stdout);
    pth_kill();
    return 3;
}
