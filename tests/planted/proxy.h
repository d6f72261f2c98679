/* A server that hands each request on to another one, for programs that say where the time is lost. Neither the other server nor
 * who asks is recorded. */
#pragma once

#include "sockets.h"

enum { QUESTIONS = 12 };

/* Waits for both sides in one call. Returns how long it has waited for the other server. */
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

/* The whole program, with its arguments: the other server answers so much later, and who asks thinks for so long before each
 * question. Ends the programs that are not recorded; returns how long the server has waited for the other one. */
static inline long proxy(int count, char **arguments, long later_ms, long think_ms)
{
    int port;
    if (count > 2 && !strcmp(arguments[1], "answer"))
        exit(answer(atoi(arguments[2]), later_ms));
    if (count > 2)
        exit(ask_parent(atoi(arguments[2]), QUESTIONS, think_ms));
    start(arguments[0], "answer", listen_at_any_port(&port));
    int upstream = connect_to(port);
    int listening = listen_at_any_port(&port);
    start(arguments[0], "ask", port);
    long waited = serve(listening, upstream);
    close(upstream);
    while (wait(NULL) > 0) {
    }
    return waited;
}
