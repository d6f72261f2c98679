// A server hands each request on to another one, which is not recorded and answers late; it waits for both sides in one call.
// cause: slow-peer
// site: serve proxy.h
// object: socket 127.0.0.1
// size: told
#include "proxy.h"

int main(int count, char **arguments)
{
    tell_size(proxy(count, arguments, 25, 0));
    return 0;
}
