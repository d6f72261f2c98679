/* Threads of the Netscape Portable Runtime; with WRAPS, all created by a function of the program's own. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <nspr.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#ifdef WRAPS
struct passed {
    void *(*routine)(void *);
    void *argument;
};

static void *start(void *argument)
{
    struct passed passed = *(struct passed *)argument;
    free(argument);
    return passed.routine(passed.argument);
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*routine)(void *), void *argument)
{
    int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *) = dlsym(RTLD_NEXT, "pthread_create");
    struct passed *passed = malloc(sizeof *passed);
    *passed = (struct passed){routine, argument};
    return real(thread, attributes, start, passed);
}
#endif

static void listener(void *data) { puts(data); }

static void worker(void *data) { puts(data); }

static void run(void (*function)(void *), char *data)
{
    PRThread *thread = PR_CreateThread(PR_USER_THREAD, function, data, PR_PRIORITY_NORMAL, PR_GLOBAL_THREAD,
                                       PR_JOINABLE_THREAD, 0);
    if (thread)
        PR_JoinThread(thread);
}

int main(void)
{
    run(listener, "listens");
    run(worker, "works");
    return PR_Cleanup();
}
