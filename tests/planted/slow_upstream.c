// A server hands each request on to another one, which is not recorded and answers late; it waits for both sides in one call.
// cause: slow-peer
// site: serve slow_upstream.c
// object: socket 127.0.0.1
// size: told
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include "planted.h"

enum { QUESTIONS = 12 };

static struct sockaddr_in address = {.sin_family = AF_INET};

static int listen_at_any_port(void)
{
    socklen_t length = sizeof(address);
    int listening = socket(AF_INET, SOCK_STREAM, 0);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = 0;
    if (bind(listening, (void *)&address, length) || listen(listening, 1) ||
        getsockname(listening, (void *)&address, &length))
        exit(1);
    return listening;
}

static int connect_to(int port)
{
    int to = socket(AF_INET, SOCK_STREAM, 0);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(port);
    if (connect(to, (void *)&address, sizeof(address)))
        exit(2);
    return to;
}

static int answer_late(int listening)
{
    char question;
    int from = accept(listening, NULL, NULL);
    while (read(from, &question, 1) == 1) {
        nap_ms(25);
        if (write(from, "!", 1) != 1)
            return 3;
    }
    return 0;
}

/* Asks as soon as the server waits. */
static int ask(int port)
{
    char path[64], state = 0, answer;
    snprintf(path, sizeof(path), "/proc/%d/stat", getppid());
    while (state != 'S') {
        FILE *stat = fopen(path, "r");
        if (!stat || fscanf(stat, "%*d %*s %c", &state) != 1)
            return 4;
        fclose(stat);
    }
    int to = connect_to(port);
    for (int i = 0; i < QUESTIONS; i++)
        if (write(to, "?", 1) != 1 || read(to, &answer, 1) != 1)
            return 5;
    return 0;
}

static void start(char *self, const char *role, int number)
{
    char text[16];
    if (fork())
        return;
    snprintf(text, sizeof(text), "%d", number);
    unsetenv("LD_PRELOAD");
    execl(self, self, role, text, (char *)NULL);
    _exit(6);
}

static void watch(int set, int descriptor)
{
    struct epoll_event event = {.events = EPOLLIN, .data.fd = descriptor};
    if (epoll_ctl(set, EPOLL_CTL_ADD, descriptor, &event))
        exit(7);
}

__attribute__((noinline)) static long serve(int listening, int upstream)
{
    struct epoll_event event;
    int set = epoll_create1(0), client = -1;
    long asked = 0, waited = 0;
    char byte;
    watch(set, listening);
    watch(set, upstream);
    while (epoll_wait(set, &event, 1, -1) == 1) {
        if (event.data.fd == listening) {
            client = accept(listening, NULL, NULL);
            watch(set, client);
        } else if (read(event.data.fd, &byte, 1) != 1) {
            break;
        } else if (event.data.fd == client) {
            asked = now_ns();
            if (write(upstream, &byte, 1) != 1)
                exit(8);
        } else {
            waited += now_ns() - asked;
            if (write(client, &byte, 1) != 1)
                exit(9);
        }
    }
    return waited;
}

int main(int count, char **arguments)
{
    if (count > 2 && !strcmp(arguments[1], "answer"))
        return answer_late(atoi(arguments[2]));
    if (count > 2)
        return ask(atoi(arguments[2]));
    int behind = listen_at_any_port();
    start(arguments[0], "answer", behind);
    int upstream = connect_to(ntohs(address.sin_port));
    int listening = listen_at_any_port();
    start(arguments[0], "ask", ntohs(address.sin_port));
    tell_size(serve(listening, upstream));
    close(upstream);
    while (wait(NULL) > 0) {
    }
    return 0;
}
