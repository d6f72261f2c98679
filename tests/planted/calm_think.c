// A client that thinks for 5 ms between its requests, each of which is answered at once: it has nothing to be told of.
// cause: none
#include <sys/socket.h>
#include "planted.h"

enum { REQUESTS = 80, SIZE = 64 };

static int ends[2];

static void *answer(void *argument)
{
    char request[SIZE];
    while (recv(ends[0], request, SIZE, MSG_WAITALL) == SIZE)
        if (send(ends[0], request, SIZE, 0) != SIZE)
            exit(1);
    return argument;
}

int main(void)
{
    pthread_t server;
    char request[SIZE] = {0};
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends))
        return 1;
    pthread_create(&server, NULL, answer, NULL);
    for (int i = 0; i < REQUESTS; i++) {
        if (send(ends[1], request, SIZE, 0) != SIZE || recv(ends[1], request, SIZE, MSG_WAITALL) != SIZE)
            return 1;
        nap_ms(5);
    }
    shutdown(ends[1], SHUT_RDWR);
    pthread_join(server, NULL);
    return 0;
}
