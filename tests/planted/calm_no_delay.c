// A client sends each request in two pieces, without delay, to a server that takes its time to answer.
// cause: none
#include <netinet/tcp.h>
#include "sockets.h"

enum { REQUESTS = 30 };

static void serve(int listening)
{
    char piece[2];
    int from = accept(listening, NULL, NULL);
    while (recv(from, piece, 2, MSG_WAITALL) == 2) {
        work(4000000);
        if (write(from, piece, 1) != 1)
            exit(2);
    }
}

int main(void)
{
    int port, on = 1, listening = listen_at_any_port(&port);
    pid_t server = fork();
    if (server == 0) {
        serve(listening);
        exit(0);
    }
    int to = connect_to(port);
    char answer;
    setsockopt(to, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    for (int i = 0; i < REQUESTS; i++) {
        work(4000000);
        if (write(to, "a", 1) != 1 || write(to, "b", 1) != 1 || read(to, &answer, 1) != 1)
            return 1;
    }
    close(to);
    waitpid(server, NULL, 0);
    return 0;
}
