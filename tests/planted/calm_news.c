// A program waits for news from another one, which is not recorded and has some now and then. Nobody asks for it.
// cause: none
#include <poll.h>
#include "sockets.h"

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
    int port;
    char news;
    if (count > 2)
        return tell(atoi(arguments[2]));
    start(arguments[0], "tell", listen_at_any_port(&port));
    struct pollfd from = {.fd = connect_to(port), .events = POLLIN};
    while (poll(&from, 1, -1) == 1 && read(from.fd, &news, 1) == 1) {
    }
    wait(NULL);
    return 0;
}
