/* Calls a function often, and tells how much memory there is that is executable and of no file, and how much
 * that could be written to as well.
 * usage: new_code CALLS FILE */
#include "trap.h"

#include <string.h>

int main(int argc, char **argv)
{
    CHECK(argc == 3);
    long sum = 0, calls = atol(argv[1]);
    for (long i = 0; i < calls; i++)
        sum = trap_add(sum, i);
    printf("%ld\n", sum);
    FILE *maps = fopen("/proc/self/maps", "r");
    CHECK(maps != NULL);
    char line[4096];
    long new_code = 0, writable_code = 0;
    while (fgets(line, sizeof line, maps) != NULL) {
        char protection[5];
        unsigned long start, end, inode;
        CHECK(sscanf(line, "%lx-%lx %4s %*s %*s %lu", &start, &end, protection, &inode) == 4);
        if (protection[2] != 'x' || strchr(line, '[') != NULL)
            continue;
        new_code += inode == 0 ? (long)(end - start) : 0;
        writable_code += protection[1] == 'w' ? (long)(end - start) : 0;
    }
    fclose(maps);
    trap_tell(argv[2], "new_code", new_code);
    trap_tell(argv[2], "writable_code", writable_code);
    return 0;
}
