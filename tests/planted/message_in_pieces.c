// A client sends each request as a head and a body, and then waits for the answer. The second piece is held back until the server, which
// has nothing to answer yet, acknowledges the first one.
// cause: delayed-acknowledgements
// group: main of
// object: socket
// site: receive_all message_in_pieces.c
// says: by write
// says: TCP_NODELAY
#include "sockets.h"

enum { REQUESTS = 60, BODY = 100 };

struct head {
    unsigned length, number;
};

__attribute__((noinline)) static int receive_all(int from, void *to, size_t length)
{
    for (size_t done = 0; done < length;) {
        ssize_t got = read(from, (char *)to + done, length - done);
        if (got <= 0)
            return 0;
        done += (size_t)got;
    }
    return 1;
}

static void serve(int listening)
{
    struct head head;
    char body[BODY];
    int from = accept(listening, NULL, NULL);
    while (receive_all(from, &head, sizeof(head)) && receive_all(from, body, head.length))
        if (write(from, body, head.length) != (ssize_t)head.length)
            exit(2);
}

int main(void)
{
    int port, listening = listen_at_any_port(&port);
    char body[BODY] = "request";
    pid_t server = fork();
    if (server == 0) {
        serve(listening);
        exit(0);
    }
    int to = connect_to(port);
    for (unsigned number = 0; number < REQUESTS; number++) {
        struct head head = {BODY, number};
        if (write(to, &head, sizeof(head)) != sizeof(head) || write(to, body, BODY) != BODY ||
            !receive_all(to, body, BODY))
            return 1;
    }
    close(to);
    waitpid(server, NULL, 0);
    return 0;
}
