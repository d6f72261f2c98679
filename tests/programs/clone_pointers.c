/* clone by its address, which is the same for all who ask. The child has a copy of the memory, or shares it, and
 * then its creator's thread data too.
 * usage: clone_pointers WAY CALLS */
#define _GNU_SOURCE
#include "trap.h"

#include <dlfcn.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

typedef int (*clone_function)(int (*)(void *), void *, int, void *, ...);
extern int __clone(int (*)(void *), void *, int, void *, ...);

static const struct {
    const char *name;
    int flags;
} ways[] = {
    {"copied", SIGCHLD},
    {"waits", CLONE_VFORK | SIGCHLD},
    {"shared", CLONE_VM | CLONE_FS | CLONE_FILES | SIGCHLD},
    {"silent", CLONE_VM | CLONE_UNTRACED},
    {"borrowed", CLONE_VM | CLONE_VFORK | SIGCHLD},
};

static long calls;
static volatile long of_child;

static long work(void)
{
    long sum = 0;
    for (long i = 0; i < calls; i++)
        sum += trap_add(sum, i) & 7;
    return sum;
}

static int child(void *argument)
{
    of_child = work();
    return *(int *)argument;
}

static void run(clone_function function, int flags)
{
    size_t size = 1 << 20;
    char *stack = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int status, wanted = 7;
    of_child = 0;
    /* (Not aligned, as it need not be.) */
    pid_t pid = function(child, stack + size - 8, flags, &wanted);
    long sum = work();
    CHECK(pid > 0 && waitpid(pid, &status, __WALL) == pid);
    printf("%d %x\n", of_child == (flags & CLONE_VM ? sum : 0), status);
}

int main(int argc, char **argv)
{
    (void)argc;
    calls = strtol(argv[2], NULL, 10);
    clone_function volatile plain = clone, underscored = __clone;
    clone_function found;
    *(void **)&found = dlsym(RTLD_DEFAULT, "clone");
    CHECK(found == plain);
    CHECK(plain(NULL, NULL, SIGCHLD, NULL) == -1);
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        if (strcmp(ways[i].name, argv[1]) == 0) {
            run(plain, ways[i].flags);
            run(underscored, ways[i].flags);
            void *libc = dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD);
            *(void **)&found = dlsym(libc, "clone");
            run(found, ways[i].flags);
        }
    }
    return 0;
}
