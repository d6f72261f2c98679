/* A thread calls a library while it holds a lock of the C library's that a fork in another thread waits for. */
#define _GNU_SOURCE
#include "trap.h"

#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static sem_t flushes;
static pid_t forking;
static volatile int is_about_to_fork;

static long deeper(long depth) { return depth > 0 ? trap_nest(depth - 1, deeper) : trap_add(1, 2); }

/* Whether the forking thread waits in a system call by which locks are waited for. */
static int waits(void)
{
    char path[64], text[32] = "";
    snprintf(path, sizeof path, "/proc/self/task/%d/syscall", forking);
    int file = open(path, O_RDONLY);
    if (file < 0 || read(file, text, sizeof text - 1) < 0)
        return 0;
    close(file);
    return atoi(text) == SYS_futex && text[0] == '2';
}

/* The list of streams is locked. */
static ssize_t write_slowly(void *cookie, const char *bytes, size_t count)
{
    (void)cookie, (void)bytes;
    sem_post(&flushes);
    while (!is_about_to_fork || !waits())
        usleep(1000);
    /* Contexts that there were none of: they need memory. */
    if (deeper(3000) != 3003)
        abort();
    return (ssize_t)count;
}

static void *flush(void *argument)
{
    FILE *stream = argument;
    fputs("text", stream);
    fflush(NULL);
    return NULL;
}

int main(void)
{
    pthread_t id;
    cookie_io_functions_t functions = {.write = write_slowly};
    FILE *stream = fopencookie(NULL, "w", functions);
    CHECK(stream != NULL && sem_init(&flushes, 0, 0) == 0);
    forking = (pid_t)syscall(SYS_gettid);
    CHECK(pthread_create(&id, NULL, flush, stream) == 0);
    sem_wait(&flushes);
    is_about_to_fork = 1;
    pid_t child = fork();
    if (child == 0) {
        trap_empty();
        _exit(5);
    }
    int status = 0;
    waitpid(child, &status, 0);
    pthread_join(id, NULL);
    char line[64];
    int length = snprintf(line, sizeof line, "child %d\n", WEXITSTATUS(status));
    CHECK(write(1, line, (size_t)length) == length);
    return 0;
}
