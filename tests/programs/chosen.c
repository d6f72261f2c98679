/* Threads of two kinds, of which a test records one. The first thread and `other` ones load a library, fork, and create threads of
 * the kind `wanted`; those fork, too.
 * usage: chosen CALLS LIBPLUGIN */
#include "trap.h"

#include <dlfcn.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

static long calls;
static long (*plugin_work)(long rounds);

static long add(long times)
{
    long sum = 0;
    for (long i = 0; i < times; i++)
        sum = trap_add(sum, 1);
    return sum;
}

static void *run(void *(*routine)(void *), void *argument)
{
    pthread_t thread;
    void *result;
    CHECK(pthread_create(&thread, NULL, routine, argument) == 0);
    CHECK(pthread_join(thread, &result) == 0);
    return result;
}

static long result_of(pid_t child)
{
    int status;
    CHECK(child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void *wanted_in_child(void *unused)
{
    (void)unused;
    return (void *)add(50);
}

static void *wanted(void *unused)
{
    (void)unused;
    return (void *)add(calls);
}

static void *wanted_with_plugin(void *unused)
{
    (void)unused;
    long sum = add(calls) + plugin_work(10);
    pid_t child = fork();
    if (child == 0)
        _exit((int)add(7));
    return (void *)(sum + result_of(child));
}

static void *other(void *unused)
{
    (void)unused;
    long sum = add(calls) + (long)run(wanted, NULL);
    pid_t child = fork();
    if (child == 0)
        _exit((int)(add(1000) / 1000 + (long)run(wanted_in_child, NULL)));
    return (void *)(sum + result_of(child));
}

int main(int argc, char **argv)
{
    CHECK(argc == 3);
    calls = atol(argv[1]);
    long sum = add(calls) + (long)run(other, NULL);
    void *plugin = dlopen(argv[2], RTLD_NOW);
    CHECK(plugin);
    *(void **)&plugin_work = dlsym(plugin, "plugin_work");
    CHECK(plugin_work);
    sum += (long)run(wanted_with_plugin, NULL);
    printf("%ld\n", sum + add(calls));
    return 0;
}
