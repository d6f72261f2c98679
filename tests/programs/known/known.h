/* libknown.so, and what the programs around it share. Each program tells the truth in the file
 * `truth`: what would be saved, and which threads are concerned. */
#ifndef KNOWN_H
#define KNOWN_H

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { KNOWN_PARSE, KNOWN_PACK, KNOWN_KINDS };
enum { KNOWN_LOGGED = 4096 };

/* The calls of one kind by the calling thread: how many, and how long they took, in ns. */
struct known_log {
    long count, total, each[KNOWN_LOGGED];
};

void known_parse(long ns);
void known_pack(long ns);
void known_tiny(void);
const struct known_log *known_log(int kind);
long known_now(void);

#ifdef __cplusplus
}
#endif

static const long US = 1000, MS = 1000000;

static inline void tell(const char *what, long number)
{
    FILE *truth = fopen("truth", "a");
    if (!truth)
        exit(99);
    fprintf(truth, "%s %ld\n", what, number);
    fclose(truth);
}

static inline long own_tid(void) { return syscall(SYS_gettid); }

static inline int known_order(const void *a, const void *b)
{
    long x = *(const long *)a, y = *(const long *)b;
    return (x > y) - (x < y);
}

/* Sorts. */
static inline long known_median(long *values, long count)
{
    qsort(values, count, sizeof *values, known_order);
    return count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

/* One thread of `count` took `values[slow]`: what it took more than the median. */
static inline void tell_slow(const long *values, long count, long slow)
{
    long *sorted = (long *)malloc(count * sizeof *sorted);
    for (long i = 0; i < count; i++)
        sorted[i] = values[i];
    tell("saves_ns", values[slow] - known_median(sorted, count));
    free(sorted);
}

/* What the calls of a log that took more than ten times the median took more than it. */
static inline long known_excess(const struct known_log *log)
{
    long *sorted = (long *)malloc(log->count * sizeof *sorted);
    for (long i = 0; i < log->count; i++)
        sorted[i] = log->each[i];
    long median = known_median(sorted, log->count), excess = 0;
    for (long i = 0; i < log->count; i++)
        if (sorted[i] > 10 * median)
            excess += sorted[i] - median;
    free(sorted);
    return excess;
}

static inline void run_threads(int count, void *(*routine)(void *))
{
    pthread_t *threads = (pthread_t *)malloc(count * sizeof *threads);
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 1 << 17);
    for (long i = 0; i < count; i++)
        if (pthread_create(&threads[i], &small, routine, (void *)i))
            exit(98);
    for (long i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
    free(threads);
}

#endif
