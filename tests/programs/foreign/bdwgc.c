// Eight threads on the stacks and registers of which a conservative collector looks for its blocks, as ever more are
// allocated: all at once, or (with an argument) a little at a time, with written pages found by the kernel's protection.
#define GC_THREADS
#include <gc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct node {
    struct node *next;
    long number;
};

static int compare(const void *a, const void *b) {
    struct node *const *x = a, *const *y = b;
    if (((*x)->number & 63) == 0)
        GC_MALLOC(500);
    return ((*x)->number > (*y)->number) - ((*x)->number < (*y)->number);
}

static void *work(void *seed) {
    long sum = 0;
    for (int round = 0; round < 12; round++) {
        struct node *list = NULL;
        for (long i = 0; i < 3000; i++) {
            struct node *node = GC_MALLOC(sizeof *node);
            node->next = list;
            node->number = ((long)seed + i) * 7919 % 10007;
            list = node;
            GC_MALLOC_ATOMIC(i % 200);
        }
        struct node **array = GC_MALLOC(3000 * sizeof *array);
        long n = 0;
        for (struct node *node = list; node; node = node->next)
            array[n++] = node;
        list = NULL;
        qsort(array, n, sizeof *array, compare);
        if (round % 4 == 0)
            GC_gcollect();
        for (long i = 0; i < n; i++)
            sum += array[i]->number * i % 1000;
    }
    return (void *)sum;
}

int main(int argc, char **argv) {
    (void)argv;
    GC_INIT();
    if (argc > 1)
        GC_enable_incremental();
    pthread_t threads[8];
    for (long i = 0; i < 8; i++)
        pthread_create(&threads[i], NULL, work, (void *)i);
    for (int i = 0; i < 8; i++) {
        void *sum;
        pthread_join(threads[i], &sum);
        printf("%ld\n", (long)sum);
    }
    printf("%d\n", GC_get_gc_no() > 8);
    return 3;
}
