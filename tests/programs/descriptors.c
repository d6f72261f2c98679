/* Looks at all its file descriptors, closes them, and opens new ones, which must get the numbers
 * that they get without a tool.
 * usage: descriptors FILE */
#define _GNU_SOURCE
#include "trap.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

static FILE *out;

static void list(const char *when)
{
    fprintf(out, "%s:", when);
    for (int fd = 0; fd < 1000; fd++)
        if (fcntl(fd, F_GETFD) >= 0)
            fprintf(out, " %d", fd);
    int fd = open("/dev/null", O_RDONLY);
    fprintf(out, ", next %d\n", fd);
    close(fd);
}

static void *calling(void *argument)
{
    for (int i = 0; i < 1000; i++)
        trap_empty();
    list("thread");
    return argument;
}

int main(int argc, char **argv)
{
    int file = open(argv[argc - 1], O_RDWR | O_CREAT | O_TRUNC, 0644);
    out = fdopen(file, "w");
    fprintf(out, "first %d\n", file);
    list("start");
    for (int fd = 0; fd < 1000; fd++)
        if (fd != file)
            close(fd);
    list("loop");
    closefrom(file + 1);
    list("closefrom");
    close_range((unsigned)file + 1, ~0U, 0);
    list("close_range");
    for (int i = 0; i < 5; i++)
        fprintf(out, "opened %d\n", open("/dev/null", O_RDWR));
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, calling, NULL) == 0);
    pthread_join(thread, NULL);
    fflush(out);
    pid_t child = fork();
    if (child == 0) {
        calling(NULL);
        exit(0);
    }
    waitpid(child, NULL, 0);
    list("end");
    fclose(out);
    return 0;
}
