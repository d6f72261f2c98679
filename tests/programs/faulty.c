/* Does what makes the hook call the system: starts, makes threads and contexts until the recording grows, loads, forks,
 * executes itself. Says how many descriptors it has in the end.
 * usage: faulty PLUGIN */
#define _GNU_SOURCE
#include "trap.h"

#include <dirent.h>
#include <dlfcn.h>
#include <pthread.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static long sum;

static void nothing(void *argument) { sum += (long)argument; }

/* Each depth is another context, in two functions by turns. */
static long deeper(long depth)
{
    for (int i = 0; i < 3; i++)
        sum = trap_add(sum, depth);
    trap_call(nothing, (void *)1);
    trap_leaf(1);
    return depth > 0 ? trap_nest(depth - 1, deeper) : 0;
}

static void *thread(void *argument)
{
    return (void *)(deeper((long)argument) + trap_add(1, 2));
}

static void callbacks(void *depth)
{
    trap_leaf(1);
    trap_add(1, 1);
    if ((long)depth > 0)
        trap_call(callbacks, (void *)((long)depth - 1));
}

static int descriptors(void)
{
    int found = 0;
    DIR *directory = opendir("/proc/self/fd");
    while (directory && readdir(directory))
        found++;
    if (directory)
        closedir(directory);
    return found;
}

int main(int argc, char **argv)
{
    CHECK(argc > 1);
    if (strcmp(argv[1], "again") == 0) {
        printf("again %ld %d\n", trap_add(3, 4), descriptors());
        return 7;
    }
    deeper(30);
    for (long i = 0; i < 3; i++) {
        pthread_t id;
        void *result;
        CHECK(pthread_create(&id, NULL, thread, (void *)(10 * i)) == 0);
        pthread_join(id, &result);
        printf("thread %ld\n", (long)result);
    }
    callbacks((void *)40);
    void *plugin = dlopen(argv[1], RTLD_NOW);
    CHECK(plugin != NULL);
    trap_empty();
    dlclose(plugin);
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        trap_call(nothing, (void *)5);
        _exit((int)trap_add(5, 6));
    }
    int status = 0;
    waitpid(child, &status, 0);
    printf("child %d\n", status);
    fflush(stdout);
    child = fork();
    if (child == 0) {
        execl("/proc/self/exe", argv[0], "again", (char *)NULL);
        _exit(127);
    }
    waitpid(child, &status, 0);
    printf("again %d sum %ld descriptors %d\n", status, sum, descriptors());
    return 3;
}
