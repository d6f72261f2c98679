// A server answers whoever is ready; one kind of request takes it much longer than the others, and all clients wait.
// cause: event-loop-held-up
// group: held_up
// says: slow_request
// size: told
#include <signal.h>
#include <sys/ioctl.h>
#include "sockets.h"

enum { CLIENTS = 3, SLOW = 5, QUICK = 60, SLOW_NS = 60000000 };

static int of_clients[CLIENTS];

/* Takes its time, and until another client has asked. */
static __attribute__((noinline)) long slow_request(void)
{
    long start = used_ns();
    int asked = 0;
    while (!asked || used_ns() - start < SLOW_NS) {
        work(100000);
        if (ioctl(of_clients[1], FIONREAD, &asked))
            exit(1);
    }
    return used_ns() - start;
}

int main(int count, char **arguments)
{
    int port, set = epoll_create1(0);
    long slow_ns = 0;
    if (count > 2) {
        signal(SIGPIPE, SIG_IGN);
        return ask_until_silence(atoi(arguments[2]), arguments[1][0] == 'f' ? QUICK : 0, 0);
    }
    int listening = listen_at_any_port(&port);
    for (int i = 0; i < CLIENTS; i++) {
        start(arguments[0], i ? "other" : "first", port);
        of_clients[i] = accept(listening, NULL, NULL);
        watch(set, of_clients[i]);
    }
    for (int slow = 0; slow < SLOW;) {
        struct epoll_event ready[CLIENTS];
        int number = epoll_wait(set, ready, CLIENTS, -1);
        for (int i = 0; i < number; i++) {
            char asked;
            if (read(ready[i].data.fd, &asked, 1) != 1)
                return 2;
            if (asked == 's') {
                slow_ns += slow_request();
                slow++;
            }
            if (write(ready[i].data.fd, "!", 1) != 1)
                return 3;
        }
    }
    /* So that it is known what was ready after the last one. */
    struct epoll_event ready;
    epoll_wait(set, &ready, 1, -1);
    for (int i = 0; i < CLIENTS; i++)
        shutdown(of_clients[i], SHUT_RDWR);
    while (wait(NULL) > 0) {
    }
    tell_size(slow_ns);
    return 0;
}
