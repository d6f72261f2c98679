// Maps what it wants at fixed places: by what is free, as run-time systems with large heaps do, and
// over whatever is there. With "over" also over what is mapped of files that end with ".chase".
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static void *map(unsigned long at, size_t len, int how)
{
    int kind = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | how;
    return mmap((void *)at, len, PROT_READ | PROT_WRITE, kind, -1, 0);
}

static void map_over(void)
{
    char line[8192];
    unsigned long start, end;
    FILE *maps = fopen("/proc/self/maps", "r");
    while (maps && fgets(line, sizeof line, maps))
        if (strstr(line, ".chase\n") && sscanf(line, "%lx-%lx", &start, &end) == 2)
            memset(map(start, end - start, MAP_FIXED), 1, 4096);
    fclose(maps);
}

static long work(void)
{
    long sum = 0;
    for (int i = 0; i < 100000; i++)
        sum += strlen("abc") + strtol("5", 0, 10);
    return sum;
}

int main(int argc, char **argv)
{
    static const unsigned long places[] = {0x10000000000,  0x20000000000,  0x40000000000,  0x100000000000,
                                           0x200000000000, 0x280000000000, 0x300000000000, 0x400000000000,
                                           0xc000000000,   0x7fff8000};
    (void)argv;
    for (int i = 0; i < 10; i++) {
        size_t len = i == 5 ? 0x40000000000 : i == 9 ? 0x10000000 : 0x10000000000;
        void *found = map(places[i], len, MAP_FIXED_NOREPLACE);
        printf("%lx %s\n", places[i], found == (void *)places[i] ? "ok" : strerror(errno));
    }
    printf("%p\n", map(0x280000000000, 0x40000000000, MAP_FIXED));
    if (argc > 1)
        map_over();
    printf("%ld\n", work());
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        printf("child: %ld\n", work());
        fflush(stdout);
        _exit(4);
    }
    int status = 0;
    waitpid(child, &status, 0);
    printf("%d\n", WEXITSTATUS(status));
    return 3;
}
