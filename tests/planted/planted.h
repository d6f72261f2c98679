/* What planted programs share: clocks, counted work, and telling the truth.
 *
 * A program says in its head what is wrong with it (docs: tests/tests/planted.rs). What it can only know when it has run, such as
 * how long its threads waited, it appends to the file `truth` in its working directory. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static inline long now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000L + now.tv_nsec;
}

/* Sleeps at least so long. */
static inline void nap_ms(long ms)
{
    struct timespec left = {ms / 1000, ms % 1000 * 1000000};
    while (nanosleep(&left, &left)) {
    }
}

/* Keeps a processor busy for as many steps; a million take some milliseconds. */
static inline unsigned long work(unsigned long steps)
{
    volatile unsigned long value = steps;
    for (unsigned long step = 0; step < steps; step++)
        value = value * 6364136223846793005UL + 1442695040888963407UL;
    return value;
}

/* Tells how much is lost: the longest time of one thread. */
static inline void tell_size(long ns)
{
    FILE *truth = fopen("truth", "a");
    fprintf(truth, "size_ns %ld\n", ns);
    fclose(truth);
}

/* Starts as many threads, each with its number, and waits for them. */
static inline void run_threads(int count, void *(*routine)(void *))
{
    pthread_t threads[64];
    for (long i = 0; i < count; i++)
        pthread_create(&threads[i], NULL, routine, (void *)i);
    for (int i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
}

/* The largest of as many times. */
static inline long most(const long *times, int count)
{
    long largest = 0;
    for (int i = 0; i < count; i++)
        largest = times[i] > largest ? times[i] : largest;
    return largest;
}
