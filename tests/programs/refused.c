/* refused ERRNO NUMBER PROGRAM ARGUMENT...: PROGRAM, for which one system call returns an error. */
#include <stdlib.h>
#include <unistd.h>
#include "refuse.h"

int main(int count, char **arguments)
{
    if (count < 4)
        return 2;
    if (!refuse((unsigned)atoi(arguments[1]), (unsigned)atoi(arguments[2])))
        return 3;
    execvp(arguments[3], arguments + 3);
    return 126;
}
