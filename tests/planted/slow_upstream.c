// A server hands each request on to another one, which is not recorded and answers late; it waits for both sides in one call.
// cause: slow-peer
// site: serve slow_upstream.c
// object: socket 127.0.0.1
// size: told
#include "sockets.h"

enum { QUESTIONS = 12 };

__attribute__((noinline)) static long serve(int listening, int upstream)
{
    struct epoll_event event;
    int set = epoll_create1(0), client = -1;
    long asked = 0, waited = 0;
    char byte;
    watch(set, listening);
    watch(set, upstream);
    while (epoll_wait(set, &event, 1, -1) == 1) {
        if (event.data.fd == listening) {
            client = accept(listening, NULL, NULL);
            watch(set, client);
        } else if (read(event.data.fd, &byte, 1) != 1) {
            break;
        } else if (event.data.fd == client) {
            asked = now_ns();
            if (write(upstream, &byte, 1) != 1)
                exit(8);
        } else {
            waited += now_ns() - asked;
            if (write(client, &byte, 1) != 1)
                exit(9);
        }
    }
    return waited;
}

int main(int count, char **arguments)
{
    int port;
    if (count > 2 && !strcmp(arguments[1], "answer"))
        return answer(atoi(arguments[2]), 25);
    if (count > 2)
        return ask_parent(atoi(arguments[2]), QUESTIONS, 0);
    start(arguments[0], "answer", listen_at_any_port(&port));
    int upstream = connect_to(port);
    int listening = listen_at_any_port(&port);
    start(arguments[0], "ask", port);
    tell_size(serve(listening, upstream));
    close(upstream);
    while (wait(NULL) > 0) {
    }
    return 0;
}
