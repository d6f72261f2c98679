// A linked library waits for something before main begins, which then has little to do.
// cause: slow-start
// group: slow_constructor
// says: libslow_start.so takes
// says: nanosleep
// links: libslow_start.c
#include "planted.h"

extern int is_started;

int main(void)
{
    work(3000000);
    printf("%d\n", is_started);
}
