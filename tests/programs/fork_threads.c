/* Forks in a process whose other threads call libraries, and start threads, all the time.
 * usage: fork_threads FORKS FILE */
#include "trap.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

static atomic_bool stop;

static void *short_lived(void *argument)
{
    trap_leaf(1);
    return argument;
}

static void *busy(void *argument)
{
    long calls = 0;
    while (!stop) {
        for (int i = 0; i < 1000; i++)
            calls = trap_add(calls, 1);
        if (argument) {
            pthread_t thread;
            CHECK(pthread_create(&thread, NULL, short_lived, NULL) == 0);
            pthread_join(thread, NULL);
        }
    }
    return (void *)calls;
}

int main(int argc, char **argv)
{
    CHECK(argc == 3);
    long forks = atol(argv[1]), good = 0, calls = 0;
    pthread_t threads[4];
    for (long i = 0; i < 4; i++)
        CHECK(pthread_create(&threads[i], NULL, busy, (void *)(i % 2)) == 0);
    for (long i = 0; i < forks; i++) {
        pid_t child = fork();
        if (child == 0) {
            long sum = 0;
            for (int k = 0; k < 10; k++)
                sum = trap_leaf(sum);
            /* A child may start threads too. */
            pthread_t thread;
            CHECK(pthread_create(&thread, NULL, short_lived, NULL) == 0);
            pthread_join(thread, NULL);
            _exit(5);
        }
        int status;
        CHECK(child > 0 && waitpid(child, &status, 0) == child);
        good += WIFEXITED(status) && WEXITSTATUS(status) == 5;
    }
    stop = true;
    for (int i = 0; i < 4; i++) {
        void *result;
        pthread_join(threads[i], &result);
        calls += (long)result;
    }
    printf("good %ld\n", good);
    trap_tell(argv[2], "calls", calls);
    return 0;
}
