/* For `chase attach`: a process that may not read the time stamp counter. A round of work for each line: calls of a function, and a sleep.
 * (It reads no clock, since the C library does that by the counter.) */
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>

int main(void)
{
    char line[16];
    if (prctl(PR_SET_TSC, PR_TSC_SIGSEGV) != 0)
        return 77;
    puts("ready");
    fflush(stdout);
    while (fgets(line, sizeof line, stdin)) {
        struct timespec time = {0, 20000000};
        long sum = 0;
        for (int i = 0; i < 500; i++)
            sum += strtol("3", NULL, 10);
        while (nanosleep(&time, &time) != 0)
            ;
        printf("%ld\n", sum);
        fflush(stdout);
    }
    return 0;
}
