// A name server, which is this program's own, takes its time.
// cause: name-resolution
// site: main names.c
// says: getaddrinfo
// says: mostly for nowhere.example.
// also: slow-peer
// flags: -lresolv
#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <resolv.h>
#include <sys/socket.h>
#include "planted.h"

static int server;

static void *answer(void *argument)
{
    unsigned char packet[512];
    struct sockaddr_in from;
    for (;;) {
        socklen_t length = sizeof(from);
        long size = recvfrom(server, packet, sizeof(packet), 0, (void *)&from, &length);
        if (size < 12)
            return argument;
        nap_ms(40);
        /* No such name. */
        packet[2] |= 0x80;
        packet[3] = 0x83;
        sendto(server, packet, (size_t)size, 0, (void *)&from, length);
    }
}

int main(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof(address);
    pthread_t thread;
    server = socket(AF_INET, SOCK_DGRAM, 0);
    if (bind(server, (void *)&address, length) || getsockname(server, (void *)&address, &length))
        return 1;
    pthread_create(&thread, NULL, answer, NULL);
    res_init();
    _res.nscount = 1;
    _res.nsaddr_list[0] = address;
    _res.retrans = 5;
    for (int i = 0; i < 5; i++) {
        struct addrinfo hints = {.ai_family = AF_INET}, *found;
        getaddrinfo("nowhere.example.", NULL, &hints, &found);
    }
    /* An end that is no question. */
    sendto(server, "x", 1, 0, (void *)&address, length);
    pthread_join(thread, NULL);
    return 0;
}
