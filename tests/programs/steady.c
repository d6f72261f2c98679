/* Does something to itself or its surroundings, and goes on calling libraries: from the same
 * thread, from new threads, from new contexts and from a fork's child.
 * usage: steady nothing|setuid|daemon|chroot|remove|nofile|fsize|cwd|dup2|fill|file|link|own [PATH]
 * (the second to fourth, and the last three: so long that the recording has to grow). */
#define _GNU_SOURCE
#include "trap.h"

#include <fcntl.h>
#include <ftw.h>
#include <pthread.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

static int remove_one(const char *path, const struct stat *s, int type, struct FTW *f)
{
    (void)s, (void)type, (void)f;
    return remove(path);
}

static void set(int resource, rlim_t limit)
{
    struct rlimit both = {limit, limit};
    CHECK(setrlimit(resource, &both) == 0);
}

/* Puts one device in the place of every descriptor but those of standard input, output and errors. */
static void overwrite(void)
{
    int device = open("/dev/full", O_RDWR);
    CHECK(device >= 0);
    for (int fd = 3; fd < 1024; fd++)
        CHECK(dup2(device, fd) == fd);
}

/* How many descriptors are that device. */
static int overwritten(void)
{
    int found = 0;
    for (int fd = 0; fd < 1024; fd++) {
        struct stat file;
        found += fstat(fd, &file) == 0 && S_ISCHR(file.st_mode) && file.st_rdev == makedev(1, 7);
    }
    return found;
}

/* Moves this process's recording in a directory away, and puts something else there: a file, a link to one, or a link to the
 * recording itself. */
static void replace(const char *how, const char *directory)
{
    if (chdir(directory) != 0)
        return;
    char own[64];
    snprintf(own, sizeof own, "steady.%d.chase", getpid());
    CHECK(rename(own, "moved.chase") == 0);
    const char *theirs = strcmp(how, "file") == 0 ? own : "theirs";
    int fd = open(theirs, O_WRONLY | O_CREAT | O_EXCL, 0600);
    CHECK(fd >= 0 && write(fd, "mine\n", 5) == 5 && close(fd) == 0);
    if (theirs != own)
        CHECK(symlink(strcmp(how, "own") == 0 ? "moved.chase" : theirs, own) == 0);
}

/* A file that takes all space of its file system; -1 if there is none. */
static int filling = -1;

static void fill(const char *directory)
{
    static const char zeros[4096];
    char path[4096];
    snprintf(path, sizeof path, "%s/filling", directory);
    filling = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);
    CHECK(filling >= 0);
    while (write(filling, zeros, sizeof zeros) == sizeof zeros)
        ;
}

/* Whether the recording is replaced. */
static bool is_replaced(const char *how)
{
    return strcmp(how, "file") == 0 || strcmp(how, "link") == 0 || strcmp(how, "own") == 0;
}

static void change(const char *how, const char *path)
{
    if (strcmp(how, "dup2") == 0)
        overwrite();
    if (strcmp(how, "setuid") == 0 || strcmp(how, "daemon") == 0)
        CHECK(setgid(65534) == 0 && setuid(65534) == 0);
    if (strcmp(how, "daemon") == 0)
        set(RLIMIT_FSIZE, 0);
    if (strcmp(how, "chroot") == 0)
        CHECK(chroot(path) == 0 && chdir("/") == 0);
    if (strcmp(how, "remove") == 0)
        nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    if (strcmp(how, "nofile") == 0)
        set(RLIMIT_NOFILE, 0);
    if (strcmp(how, "fsize") == 0)
        set(RLIMIT_FSIZE, 0);
    if (strcmp(how, "cwd") == 0)
        CHECK(chdir("/") == 0);
    if (strcmp(how, "fill") == 0)
        fill(path);
    if (is_replaced(how))
        replace(how, path);
}

static long depth_callback(long depth)
{
    trap_empty();
    return depth > 0 ? trap_nest(depth - 1, depth_callback) : 0;
}

static void *work(void *argument)
{
    (void)argument;
    /* Whoever writes to a page after it was written to the disk may have to find space for it again. */
    static int rounds;
    if (filling >= 0 && rounds++ % 5 == 0)
        syncfs(filling);
    /* New contexts need space in the recording. */
    for (long depth = 0; depth < 100; depth++)
        trap_nest(depth, depth_callback);
    return NULL;
}

int main(int argc, char **argv)
{
    CHECK(argc >= 2);
    work(NULL);
    change(argv[1], argc > 2 ? argv[2] : NULL);
    work(NULL);
    bool departs = strcmp(argv[1], "setuid") == 0 || strcmp(argv[1], "daemon") == 0 ||
                   strcmp(argv[1], "chroot") == 0;
    /* (On a full disk, each first write to a page takes milliseconds.) */
    int threads = departs || is_replaced(argv[1]) ? 700 : filling >= 0 ? 10 : 50;
    for (int i = 0; i < threads; i++) {
        pthread_t thread;
        CHECK(pthread_create(&thread, NULL, work, NULL) == 0);
        pthread_join(thread, NULL);
    }
    printf("ids %d %d\n", getuid(), geteuid());
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        work(NULL);
        _exit(trap_not(true) ? 1 : 33);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status));
    printf("child %d, %d descriptors overwritten\n", WEXITSTATUS(status), overwritten());
    return 0;
}
