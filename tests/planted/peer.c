// The other end of a connection, a program that is not recorded, answers late.
// cause: slow-peer
// group: main of peer
// site: ask peer.c
// object: socket 127.0.0.1
// size: told
#include "sockets.h"

enum { QUESTIONS = 12 };

static long waited;

__attribute__((noinline)) static void ask(int to)
{
    char answer;
    long start = now_ns();
    if (write(to, "?", 1) != 1 || read(to, &answer, 1) != 1)
        exit(3);
    waited += now_ns() - start;
}

int main(int count, char **arguments)
{
    int port;
    if (count > 2)
        return answer(atoi(arguments[2]), 25);
    start(arguments[0], "answer", listen_at_any_port(&port));
    int to = connect_to(port);
    for (int i = 0; i < QUESTIONS; i++)
        ask(to);
    close(to);
    wait(NULL);
    tell_size(waited);
    return 0;
}
