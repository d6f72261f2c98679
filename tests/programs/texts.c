/* Calls that are passed a path and take long: each opens a pipe, whose other end another thread opens after the first one is known to
 * be asleep in its call. Takes how many more of them there are. */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static int turns[2], ends[2];
/* Where a path is that is gone when its call returns. */
static void *going;

static int is_asleep(void)
{
    char path[64], text[256];
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", getpid());
    FILE *file = fopen(path, "r");
    if (!file || !fgets(text, sizeof text, file))
        exit(1);
    fclose(file);
    return strstr(text, ") S ") != 0;
}

static void *open_other_ends(void *name)
{
    char turn;
    while (read(turns[0], &turn, 1) == 1) {
        while (!is_asleep())
            usleep(100);
        usleep(2000);
        if (going && munmap(going, 4096))
            exit(1);
        close(openat(AT_FDCWD, name, O_RDONLY));
        if (write(ends[1], "x", 1) != 1)
            exit(1);
    }
    return 0;
}

static void open_slowly(const char *name, const char *passed, int times)
{
    char end;
    pthread_t thread;
    if (mkfifo(name, 0600) || pipe(turns) || pipe(ends) || pthread_create(&thread, 0, open_other_ends, (void *)name))
        exit(1);
    for (int i = 0; i < times; i++) {
        if (write(turns[1], "x", 1) != 1)
            exit(1);
        close(open(passed, O_WRONLY));
        if (read(ends[0], &end, 1) != 1)
            exit(1);
    }
    close(turns[1]);
    pthread_join(thread, 0);
    close(turns[0]);
    close(ends[0]);
    close(ends[1]);
    unlink(name);
}

int main(int count, char **arguments)
{
    char deep[400] = "", name[16];
    open_slowly("first", "first", 3);
    open_slowly("second", "second", 5);
    /* Longer than what is kept of it. */
    while (strlen(deep) < 300)
        strcat(deep, "./././././");
    strcat(deep, "third");
    open_slowly(deep, deep, 1);
    for (int i = 0; count > 1 && i < atoi(arguments[1]); i++) {
        snprintf(name, sizeof name, "more-%d", i);
        open_slowly(name, name, 1);
    }
    going = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    open_slowly("gone", strcpy(going, "gone"), 1);
    /* Texts that can't be read: the calls fail as they would. */
    if (open((const char *)16, O_RDONLY) != -1 || open(0, O_RDONLY) != -1)
        return 1;
    puts("done");
    return 0;
}
