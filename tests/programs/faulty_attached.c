/* Is attached to, and makes no system calls between its marks but those of fault_attach.c's list. A round for each line that it
 * reads, while another thread calls too; in the end it says how many descriptors it has.
 * usage: faulty_attached */
#define _GNU_SOURCE
#include "trap.h"

#include <dirent.h>
#include <pthread.h>
#include <stdarg.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MARK 0xabcdef

static volatile int has_begun, is_over;
static long wrong;

static void add_one(void *sum) { *(long *)sum = trap_add(*(long *)sum, 1); }

static long deeper(long depth) { return depth > 0 ? 1 + trap_nest(depth - 1, deeper) : 0; }

static long work(long calls)
{
    long sum = 0;
    for (long i = 0; i < calls; i++)
        trap_call(add_one, &sum);
    return sum + deeper(5);
}

static void *thread(void *expected)
{
    has_begun = 1;
    while (!is_over) {
        wrong += work(100) != (long)expected;
        usleep(100);
    }
    return NULL;
}

/* (stdio asks the system about its files.) */
static void say(const char *format, ...)
{
    char text[80];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    CHECK(write(1, text, (size_t)length) == length);
}

static int descriptors(void)
{
    int found = 0;
    DIR *directory = opendir("/proc/self/fd");
    while (directory && readdir(directory))
        found++;
    closedir(directory);
    return found;
}

int main(void)
{
    pthread_t id;
    char byte;
    CHECK(pthread_create(&id, NULL, thread, (void *)work(100)) == 0);
    while (!has_begun)
        usleep(100);
    syscall(MARK);
    say("ready\n");
    while (read(0, &byte, 1) == 1)
        if (byte == '\n')
            say("%ld\n", work(1000));
    syscall(MARK);
    is_over = 1;
    CHECK(pthread_join(id, NULL) == 0);
    say("wrong %ld, descriptors %d\n", wrong, descriptors());
    return 0;
}
