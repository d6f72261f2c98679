// The other end of a connection, a program that is not recorded, answers late.
// cause: slow-peer
// site: ask peer.c
// object: socket 127.0.0.1
// size: told
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include "planted.h"

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

static int serve(int listening)
{
    char question;
    int from = accept(listening, NULL, NULL);
    while (read(from, &question, 1) == 1) {
        nap_ms(25);
        if (write(from, "!", 1) != 1)
            return 4;
    }
    return 0;
}

int main(int count, char **arguments)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof(address);
    if (count > 1)
        return serve(atoi(arguments[1]));
    int listening = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(listening, (void *)&address, length) || listen(listening, 1) ||
        getsockname(listening, (void *)&address, &length))
        return 1;
    if (!fork()) {
        char number[16];
        snprintf(number, sizeof(number), "%d", listening);
        unsetenv("LD_PRELOAD");
        execl(arguments[0], arguments[0], number, (char *)NULL);
        _exit(5);
    }
    int to = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(to, (void *)&address, length))
        return 2;
    for (int i = 0; i < QUESTIONS; i++)
        ask(to);
    close(to);
    wait(NULL);
    tell_size(waited);
    return 0;
}
