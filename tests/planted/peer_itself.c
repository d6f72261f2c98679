// The other end of a connection is the same program, started again, which answers late.
// cause: slow-peer
// group: main of peer_itself
// site: ask peer_itself.c
// object: socket 127.0.0.1
// size: told
#include "sockets.h"

enum { QUESTIONS = 40 };

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
    char text[16];
    if (count > 2)
        return answer(atoi(arguments[2]), 25);
    snprintf(text, sizeof(text), "%d", listen_at_any_port(&port));
    if (!fork()) {
        execl(arguments[0], arguments[0], "answer", text, (char *)NULL);
        _exit(83);
    }
    int to = connect_to(port);
    for (int i = 0; i < QUESTIONS; i++)
        ask(to);
    close(to);
    wait(NULL);
    tell_size(waited);
    return 0;
}
