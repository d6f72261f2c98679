// A server hands each request on to another one, which answers at once; those who ask think for a while before they do.
// cause: none
#include "sockets.h"

enum { QUESTIONS = 12 };

static void serve(int listening, int upstream)
{
    struct epoll_event event;
    int set = epoll_create1(0), client = -1;
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
            if (write(upstream, &byte, 1) != 1)
                exit(8);
        } else {
            if (write(client, &byte, 1) != 1)
                exit(9);
        }
    }
}

int main(int count, char **arguments)
{
    int port;
    if (count > 2 && !strcmp(arguments[1], "answer"))
        return answer(atoi(arguments[2]), 0);
    if (count > 2)
        return ask_parent(atoi(arguments[2]), QUESTIONS, 25);
    start(arguments[0], "answer", listen_at_any_port(&port));
    int upstream = connect_to(port);
    int listening = listen_at_any_port(&port);
    start(arguments[0], "ask", port);
    serve(listening, upstream);
    close(upstream);
    while (wait(NULL) > 0) {
    }
    return 0;
}
