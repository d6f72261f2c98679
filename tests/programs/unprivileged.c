/* What an ordinary user's program does in known times.
 *
 * unprivileged threads: two threads compute for known times and one sleeps; says how long each ran, in ns.
 * unprivileged tree: a child that computes, and one that becomes another image first.
 * unprivileged compute MS: computes.
 * unprivileged interrupted: waits for 600 ms, interrupted by a handler that makes calls that are long themselves.
 * unprivileged busy: many calls of one kind from more threads than processors.
 * unprivileged seen: what of itself a program can see while it computes. */
#define _GNU_SOURCE
#include <dirent.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static long ran_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return now.tv_sec * 1000000000L + now.tv_nsec;
}

/* Few calls: most of the time is between them. */
__attribute__((noinline)) static void compute(long ms)
{
    volatile unsigned long sum = 0;
    while (ran_ns() < ms * 1000000)
        for (int i = 0; i < 1000000; i++)
            sum += i;
}

static void *long_one(void *told)
{
    compute(600);
    *(long *)told = ran_ns();
    return NULL;
}

static void *short_one(void *told)
{
    compute(200);
    *(long *)told = ran_ns();
    return NULL;
}

static void *sleeper(void *told)
{
    for (int i = 0; i < 30; i++)
        usleep(10000);
    *(long *)told = ran_ns();
    return NULL;
}

static int threads(void)
{
    void *(*routines[])(void *) = {long_one, short_one, sleeper};
    pthread_t threads[3];
    long told[3];
    for (int i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, routines[i], &told[i]);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    printf("%ld %ld %ld\n", told[0], told[1], told[2]);
    return 0;
}

static int tree(char *self)
{
    pid_t child = fork();
    if (child == 0) {
        compute(400);
        exit(0);
    }
    waitpid(child, NULL, 0);
    child = vfork();
    if (child == 0) {
        execl(self, self, "compute", "300", (char *)NULL);
        _exit(1);
    }
    waitpid(child, NULL, 0);
    return 0;
}

static volatile sig_atomic_t interruptions;

static void interrupt(int signal)
{
    (void)signal;
    interruptions++;
    usleep(300);
}

/* poll is not restarted. */
static int interrupted(void)
{
    struct sigaction action = {.sa_handler = interrupt};
    struct itimerval each = {{0, 30000}, {0, 30000}};
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &each, NULL);
    while (interruptions < 20)
        poll(NULL, 0, 500);
    return 0;
}

static int by_value(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

/* Calls of some 20 us, all alike. */
static void *sort_often(void *times)
{
    int values[400];
    for (long n = 0; n < (long)times; n++) {
        for (int i = 0; i < 400; i++)
            values[i] = (i * 7919 + 13) % 400;
        qsort(values, 400, sizeof(*values), by_value);
    }
    return NULL;
}

static int busy(void)
{
    enum { THREADS = 12 };
    pthread_t threads[THREADS];
    for (long i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, sort_often, (void *)4000L);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    return 0;
}

static void print_lines(const char *path, const char *prefix)
{
    char line[512];
    FILE *file = fopen(path, "r");
    while (file && fgets(line, sizeof(line), file))
        if (!strncmp(line, prefix, strlen(prefix)))
            fputs(line, stdout);
    if (file)
        fclose(file);
}

static int seen(void)
{
    compute(300);
    int descriptors = 0;
    DIR *directory = opendir("/proc/self/fd");
    while (directory && readdir(directory))
        descriptors++;
    printf("%d descriptors\n", descriptors);
    print_lines("/proc/self/status", "Sig");
    print_lines("/proc/self/status", "Shd");
    print_lines("/proc/self/status", "Threads");
    print_lines("/proc/self/status", "TracerPid");
    print_lines("/proc/self/timers", "");
    timer_t timer;
    if (timer_create(CLOCK_MONOTONIC, NULL, &timer) == 0)
        puts("a timer");
    print_lines("/proc/self/timers", "ID");
    return waitpid(-1, NULL, WNOHANG) == -1 ? 0 : 3;
}

int main(int count, char **arguments)
{
    const char *mode = count > 1 ? arguments[1] : "";
    if (!strcmp(mode, "threads"))
        return threads();
    if (!strcmp(mode, "tree"))
        return tree(arguments[0]);
    if (!strcmp(mode, "interrupted"))
        return interrupted();
    if (!strcmp(mode, "busy"))
        return busy();
    if (!strcmp(mode, "seen"))
        return seen();
    if (!strcmp(mode, "compute") && count > 2) {
        compute(atol(arguments[2]));
        return 0;
    }
    return 2;
}
