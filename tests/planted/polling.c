// A thread looks each millisecond whether there is something to do.
// cause: polling
// waker: nobody: time was over
// site: look polling.c
#include <poll.h>
#include "planted.h"

__attribute__((noinline)) static void look(int descriptor)
{
    struct pollfd wanted = {.fd = descriptor, .events = POLLIN};
    if (poll(&wanted, 1, 1) != 0)
        exit(1);
}

int main(void)
{
    int ends[2];
    if (pipe(ends))
        return 1;
    for (int i = 0; i < 250; i++)
        look(ends[0]);
    return 0;
}
