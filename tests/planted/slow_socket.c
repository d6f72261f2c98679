// Two threads and a pair of sockets; who reads is slow.
// cause: limiting-stage
// group: digest
// object: socket
// waker: digest, in
// size: told
#include <sys/socket.h>
#include "planted.h"

enum { ITEMS = 60, ITEM = 65536 };

static int ends[2];
static long waited;

static void *feed(void *argument)
{
    static char item[ITEM];
    for (int i = 0; i < ITEMS; i++) {
        work(200000);
        long start = now_ns();
        for (long done = 0, part; done < ITEM; done += part)
            if ((part = send(ends[0], item + done, ITEM - done, 0)) <= 0)
                exit(1);
        waited += now_ns() - start;
    }
    close(ends[0]);
    return argument;
}

static void *digest(void *argument)
{
    static char item[ITEM];
    for (long all = 0, part; (part = recv(ends[1], item, ITEM, 0)) > 0; all += part)
        work(part * 24);
    return argument;
}

int main(void)
{
    pthread_t threads[2];
    int small = 32768;
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) || setsockopt(ends[0], SOL_SOCKET, SO_SNDBUF, &small, sizeof(small)))
        return 1;
    pthread_create(&threads[0], NULL, feed, NULL);
    pthread_create(&threads[1], NULL, digest, NULL);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    tell_size(waited);
    return 0;
}
