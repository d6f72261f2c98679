// A server that waits for requests, of which few come.
// cause: none
#include <sys/epoll.h>
#include "planted.h"

static int ends[2];

static void *client(void *argument)
{
    for (int request = 0; request < 6; request++) {
        nap_ms(50);
        if (write(ends[1], "r", 1) != 1)
            exit(1);
    }
    return argument;
}

int main(void)
{
    pthread_t thread;
    struct epoll_event event = {.events = EPOLLIN};
    char request;
    int epoll = epoll_create1(0);
    if (pipe(ends) || epoll_ctl(epoll, EPOLL_CTL_ADD, ends[0], &event))
        return 1;
    pthread_create(&thread, NULL, client, NULL);
    for (int served = 0; served < 6; served++)
        if (epoll_wait(epoll, &event, 1, -1) != 1 || read(ends[0], &request, 1) != 1)
            return 2;
    pthread_join(thread, NULL);
    return 0;
}
