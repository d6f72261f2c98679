// A program waits for news from another one, which is not recorded and has some now and then. Nobody asks for it.
// cause: none
#include <poll.h>
#include <sys/socket.h>
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/wait.h>
#include "planted.h"

enum { NEWS = 10 };

static int tell(int listening)
{
    int to = accept(listening, NULL, NULL);
    for (int i = 0; i < NEWS; i++) {
        nap_ms(30);
        if (write(to, "n", 1) != 1)
            return 1;
    }
    return 0;
}

int main(int count, char **arguments)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof(address);
    char news;
    if (count > 1)
        return tell(atoi(arguments[1]));
    int listening = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(listening, (void *)&address, length) || listen(listening, 1) ||
        getsockname(listening, (void *)&address, &length))
        return 2;
    if (!fork()) {
        char number[16];
        snprintf(number, sizeof(number), "%d", listening);
        unsetenv("LD_PRELOAD");
        execl(arguments[0], arguments[0], number, (char *)NULL);
        _exit(3);
    }
    struct pollfd from = {.fd = socket(AF_INET, SOCK_STREAM, 0), .events = POLLIN};
    if (connect(from.fd, (void *)&address, length))
        return 4;
    while (poll(&from, 1, -1) == 1 && read(from.fd, &news, 1) == 1) {
    }
    wait(NULL);
    return 0;
}
