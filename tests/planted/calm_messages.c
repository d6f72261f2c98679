// Short messages go to and fro, each of which needs an answer; between them, both ends work.
// cause: none
#include "sockets.h"

enum { MESSAGES = 3000 };

static int port;

static void *client(void *self)
{
    char answer;
    int server = connect_to(port);
    for (int i = 0; i < MESSAGES; i++) {
        work(20000);
        if (send(server, "m", 1, 0) != 1 || recv(server, &answer, 1, 0) != 1)
            exit(1);
    }
    close(server);
    return self;
}

int main(void)
{
    char message;
    pthread_t other;
    int listening = listen_at_any_port(&port);
    pthread_create(&other, NULL, client, NULL);
    int from = accept(listening, NULL, NULL);
    while (recv(from, &message, 1, 0) == 1) {
        work(20000);
        if (send(from, "a", 1, 0) != 1)
            return 2;
    }
    pthread_join(other, NULL);
    return 0;
}
