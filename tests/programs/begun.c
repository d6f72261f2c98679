/* Calls before the one that begins the recording (of trap_leaf), and after it, by two threads; by children of forks before and after;
 * and by a child of vfork, which is not the process. */
#include "trap.h"

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

static pthread_barrier_t barrier;

static long add(long times)
{
    long sum = 0;
    for (long i = 0; i < times; i++)
        sum = trap_add(sum, 1);
    return sum;
}

static void *early(void *unused)
{
    (void)unused;
    long sum = add(1000);
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);
    return (void *)(sum + add(300));
}

static long result_of(pid_t child)
{
    int status;
    CHECK(child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status));
    return WEXITSTATUS(status);
}

int main(void)
{
    long sum = add(1000);
    pid_t child = fork();
    if (child == 0) {
        long before = add(30);
        exit((int)(trap_leaf(before) != 0 ? add(40) : 0));
    }
    sum += result_of(child);
    child = vfork();
    if (child == 0)
        _exit(trap_leaf(1) != 0);
    sum += result_of(child);

    pthread_t thread;
    void *result;
    pthread_barrier_init(&barrier, NULL, 2);
    CHECK(pthread_create(&thread, NULL, early, NULL) == 0);
    pthread_barrier_wait(&barrier);
    sum += trap_leaf(1) != 0;
    pthread_barrier_wait(&barrier);
    sum += add(500);
    CHECK(pthread_join(thread, &result) == 0);
    child = fork();
    if (child == 0)
        exit((int)add(20));
    printf("%ld\n", sum + (long)result + result_of(child));
    return 0;
}
