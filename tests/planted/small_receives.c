// A server receives each request byte by byte.
// cause: small-transfers
// also: limiting-stage
// group: main of
// object: socket
// site: receive_line small_receives.c
// says: of 1 byte on average
#include "sockets.h"

enum { REQUESTS = 400, LENGTH = 2000 };

static int port;

__attribute__((noinline)) static int receive_line(int from, char *line)
{
    int length = 0;
    do {
        if (recv(from, &line[length], 1, 0) != 1)
            return 0;
    } while (line[length++] != '\n');
    return length;
}

static void *client(void *self)
{
    static char request[LENGTH];
    char answer;
    int server = connect_to(port);
    memset(request, 'r', LENGTH - 1);
    request[LENGTH - 1] = '\n';
    for (int i = 0; i < REQUESTS; i++)
        if (send(server, request, LENGTH, 0) != LENGTH || recv(server, &answer, 1, 0) != 1)
            exit(1);
    close(server);
    return self;
}

int main(void)
{
    static char line[LENGTH];
    pthread_t other;
    int listening = listen_at_any_port(&port);
    pthread_create(&other, NULL, client, NULL);
    int from = accept(listening, NULL, NULL);
    while (receive_line(from, line))
        if (send(from, "k", 1, 0) != 1)
            return 2;
    pthread_join(other, NULL);
    return 0;
}
