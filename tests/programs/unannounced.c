/* Forks that the C library does not know of, by an instruction or through pointers. What the child calls is its
 * own; calls that were open return in it too.
 * usage: unannounced WAY CALLS */
#define _GNU_SOURCE
#include "trap.h"

#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *way;
static long calls;
static char stack[1 << 18] __attribute__((aligned(16)));
static int in_child;

static long work(void)
{
    long sum = 0;
    for (long i = 0; i < calls; i++)
        sum += trap_add(sum, i) & 7;
    return sum;
}

static long deep(long depth)
{
    return depth == 0 ? work() : trap_nest(depth - 1, deep) + 1;
}

static void *thread(void *argument)
{
    *(long *)argument = work();
    return NULL;
}

static int child(void *argument)
{
    (void)argument;
    in_child = 1;
    long sum = work(), of_thread = 0;
    int (*volatile create)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *) =
        pthread_create;
    pthread_t id;
    if (strcmp(way, "threads") == 0) {
        CHECK(create(&id, NULL, thread, &of_thread) == 0 && pthread_join(id, NULL) == 0);
        CHECK(of_thread == sum);
    }
    return sum == work() ? 5 : 6;
}

static pid_t by_instruction(void)
{
    long result;
    __asm__ volatile("syscall" : "=a"(result) : "a"(SYS_fork) : "rcx", "r11", "memory");
    return (pid_t)result;
}

static pid_t split(void)
{
    void *libc = dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD);
    CHECK(libc != NULL);
    if (strcmp(way, "_Fork") == 0) {
        pid_t (*function)(void);
        *(void **)&function = dlsym(libc, "_Fork");
        return function();
    }
    if (strcmp(way, "syscall") == 0) {
        long (*function)(long, ...);
        *(void **)&function = dlsym(libc, "syscall");
        return (pid_t)function(SYS_clone, SIGCHLD, 0, 0, 0, 0);
    }
    if (strcmp(way, "clone") == 0) {
        int (*function)(int (*)(void *), void *, int, void *, ...);
        *(void **)&function = dlsym(libc, "clone");
        return function(child, stack + sizeof stack, SIGCHLD, NULL);
    }
    return by_instruction();
}

static int status;

static void go(void *argument)
{
    (void)argument;
    pid_t pid = split();
    if (pid == 0) {
        status = child(NULL);
        return;
    }
    int found;
    work();
    CHECK(pid > 0 && waitpid(pid, &found, 0) == pid);
    status = WIFEXITED(found) ? WEXITSTATUS(found) : -1;
}

static long go_deep(long depth)
{
    if (depth > 0)
        return trap_nest(depth - 1, go_deep);
    go(NULL);
    return 0;
}

static void finish(void)
{
    deep(3);
    if (in_child)
        _exit(status);
}

static void *go_in_thread(void *argument)
{
    trap_call(go, argument);
    finish();
    return NULL;
}

int main(int argc, char **argv)
{
    way = argv[1];
    calls = strtol(argv[2], NULL, 10);
    (void)argc;
    work();
    if (strcmp(way, "deep") == 0) {
        trap_nest(200, go_deep);
    } else if (strcmp(way, "in_thread") == 0) {
        pthread_t id;
        CHECK(pthread_create(&id, NULL, go_in_thread, NULL) == 0);
        CHECK(pthread_join(id, NULL) == 0);
    } else {
        trap_call(go, NULL);
    }
    finish();
    printf("%d\n", status);
    return status == 5 ? 0 : 1;
}
