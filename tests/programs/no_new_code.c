/* Runs a program in which no memory becomes executable that was not. Where the kernel can't see to that, says so.
 * usage: no_new_code PROGRAM ARGUMENT... */
#include <stdio.h>
#include <sys/prctl.h>
#include <unistd.h>

#ifndef PR_SET_MDWE
#define PR_SET_MDWE 65
#define PR_MDWE_REFUSE_EXEC_GAIN 1
#endif

int main(int argc, char **argv)
{
    if (argc < 2)
        return 2;
    if (prctl(PR_SET_MDWE, PR_MDWE_REFUSE_EXEC_GAIN, 0, 0, 0) != 0) {
        perror("PR_SET_MDWE");
        return 3;
    }
    execvp(argv[1], argv + 1);
    perror(argv[1]);
    return 4;
}
