// An event loop that starts late, sleeps by poll, and takes a long turn when nobody waits for it; a thread that waits for one
// descriptor at a time, and works long in between.
// cause: none
#include <poll.h>
#include <sys/epoll.h>
#include "planted.h"

enum { TURNS = 100, LONG_MS = 60 };

static void take(int from)
{
    char byte;
    if (read(from, &byte, 1) != 1)
        exit(1);
}

static void put(int to)
{
    if (write(to, "b", 1) != 1)
        exit(2);
}

static void *reader(void *argument)
{
    int ends[2];
    if (pipe(ends))
        exit(3);
    for (int i = 0; i < TURNS; i++) {
        struct pollfd from = {.fd = ends[0], .events = POLLIN};
        put(ends[1]);
        if (poll(&from, 1, -1) != 1)
            exit(4);
        take(ends[0]);
        if (i % (TURNS / 2) == 1)
            nap_ms(LONG_MS);
    }
    return argument;
}

int main(void)
{
    pthread_t thread;
    int ends[2], set = epoll_create1(0);
    struct epoll_event event = {.events = EPOLLIN};
    nap_ms(LONG_MS);
    if (pipe(ends) || epoll_ctl(set, EPOLL_CTL_ADD, ends[0], &event))
        return 5;
    pthread_create(&thread, NULL, reader, NULL);
    for (int i = 0; i < TURNS; i++) {
        put(ends[1]);
        if (epoll_wait(set, &event, 1, -1) != 1)
            return 6;
        take(ends[0]);
        if (i == TURNS / 2) {
            poll(NULL, 0, LONG_MS);
            if (epoll_wait(set, &event, 1, 1) != 0)
                return 7;
        }
    }
    pthread_join(thread, NULL);
    return 0;
}
