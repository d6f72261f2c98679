/* Calls a function often, and tells how much memory there is that is executable and of no file, how much that could be
 * written to as well, and how much of it is accounted for with its mapping ("ac" among the flags).
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
    FILE *maps = fopen("/proc/self/smaps", "r");
    CHECK(maps != NULL);
    char line[4096];
    long new_code = 0, writable_code = 0, accounted_code = 0, bytes = 0;
    while (fgets(line, sizeof line, maps) != NULL) {
        char protection[5];
        unsigned long start, end, inode;
        if (sscanf(line, "%lx-%lx %4s %*s %*s %lu", &start, &end, protection, &inode) == 4) {
            int is_nobodys = inode == 0 || strstr(line, "/dev/zero") != NULL;
            bytes = protection[2] == 'x' && strchr(line, '[') == NULL ? (long)(end - start) : 0;
            new_code += is_nobodys ? bytes : 0;
            writable_code += protection[1] == 'w' ? bytes : 0;
        } else if (strncmp(line, "VmFlags:", 8) == 0 && strstr(line, " ac") != NULL) {
            accounted_code += bytes;
        }
    }
    fclose(maps);
    trap_tell(argv[2], "new_code", new_code);
    trap_tell(argv[2], "writable_code", writable_code);
    trap_tell(argv[2], "accounted_code", accounted_code);
    return 0;
}
