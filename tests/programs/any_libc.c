// A few calls and an exit status, with nothing but the C library, whichever that is.
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    long sum = 0;
    for (int i = 0; i < 1000; i++)
        sum += strtol("5", NULL, 10);
    printf("%ld %d %s\n", sum, argc, argc > 1 ? argv[1] : "");
    return 3;
}
