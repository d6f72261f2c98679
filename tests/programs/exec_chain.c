/* Replaces its own image again and again, from inside a library callback; one exec fails.
 * usage: exec_chain N */
#include "trap.h"

#include <unistd.h>

static char *self;

static void next(void *argument)
{
    long n = (long)argument;
    char number[20];
    snprintf(number, sizeof number, "%ld", n - 1);
    execl("/nowhere/program", "program", NULL);
    trap_leaf(n);
    fflush(stdout);
    execl(self, self, number, NULL);
    abort();
}

int main(int argc, char **argv)
{
    CHECK(argc == 2);
    self = argv[0];
    long n = atol(argv[1]);
    for (long i = 0; i < 10 + n; i++)
        trap_empty();
    printf("image %ld\n", n);
    if (n > 0)
        trap_call(next, (void *)n);
    return 0;
}
