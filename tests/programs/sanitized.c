// What sanitizers report, each with its stack: "overflow" reads behind a block, "leak" loses one, "undefined" computes what C
// doesn't define, in a callback, too. "fine" does nothing wrong, in several threads and in a fork's child.
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static long total;
static void *volatile kept;

static void *work(void *argument)
{
    for (int i = 0; i < 1000; i++) {
        long number = strtol("12", 0, 10);
        pthread_mutex_lock(&mutex);
        total += number;
        pthread_mutex_unlock(&mutex);
    }
    return argument;
}

static __attribute__((noinline)) void lose(size_t len)
{
    kept = malloc(len);
    memset(kept, 1, len);
    kept = NULL;
}

static __attribute__((noinline)) void overflow(char *block, size_t len)
{
    char copy[128];
    memcpy(copy, block, len + 1);
    printf("%d\n", copy[0]);
}

static volatile int most = INT_MAX, many = 40, few[2] = {3, 1};

static int order(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b + (most + 1 != 0) - 1;
}

static __attribute__((noinline)) void undefined(void)
{
    int numbers[2] = {few[0], few[1]};
    printf("%d\n", most + 1);
    printf("%d\n", 1 << many);
    qsort(numbers, 2, sizeof(int), order);
    printf("%d\n", numbers[0]);
}

static void fine(void)
{
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, work, NULL);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    printf("%ld\n", total);
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        work(NULL);
        printf("child: %ld\n", total);
        exit(4);
    }
    int status = 0;
    waitpid(child, &status, 0);
    printf("%d\n", WEXITSTATUS(status));
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "fine";
    if (strcmp(what, "overflow") == 0) {
        char *block = calloc(1, 64);
        overflow(block, 64);
        free(block);
    } else if (strcmp(what, "leak") == 0) {
        for (int i = 0; i < 3; i++)
            lose(1000);
    } else if (strcmp(what, "undefined") == 0) {
        undefined();
    } else {
        fine();
    }
    return 3;
}
