/* refuses_itself ERRNO NUMBER: installs a filter by which one system call returns an error, and then works in rounds: for each line
   on standard input it says how long its words were together. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "refuse.h"

int main(int count, char **arguments)
{
    if (count != 3)
        return 2;
    unsigned error = (unsigned)atoi(arguments[1]), refused = (unsigned)atoi(arguments[2]);
    static char line[64];
    size_t length = 0;
    setvbuf(stdout, NULL, _IOLBF, BUFSIZ);
    puts("ready");
    int first = 1;
    while (fgets(line, sizeof line, stdin)) {
        /* (What is called for the first time has its address then.) */
        if (first && !refuse(error, refused))
            return 3;
        first = 0;
        length += strlen(line);
        printf("%zu\n", length);
    }
    printf("%zu in all\n", length);
    return 0;
}
