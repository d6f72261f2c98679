/* What planted programs share that talk to programs of their own which are not recorded. */
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include "planted.h"

/* Listens at a port of this machine, which is put into `port`. */
static inline int listen_at_any_port(int *port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof(address);
    int listening = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(listening, (void *)&address, length) || listen(listening, 1) ||
        getsockname(listening, (void *)&address, &length))
        exit(81);
    *port = ntohs(address.sin_port);
    return listening;
}

static inline int connect_to(int port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int to = socket(AF_INET, SOCK_STREAM, 0);
    address.sin_port = htons(port);
    if (connect(to, (void *)&address, sizeof(address)))
        exit(82);
    return to;
}

/* Starts this program again, with a role and a number, without the library. */
static inline void start(char *self, const char *role, int number)
{
    char text[16];
    if (fork())
        return;
    snprintf(text, sizeof(text), "%d", number);
    unsetenv("LD_PRELOAD");
    execl(self, self, role, text, (char *)NULL);
    _exit(83);
}

/* Answers each byte that a connection sends, so much later. */
static inline int answer(int listening, long later_ms)
{
    char question;
    int from = accept(listening, NULL, NULL);
    while (read(from, &question, 1) == 1) {
        nap_ms(later_ms);
        if (write(from, "!", 1) != 1)
            return 84;
    }
    return 0;
}

/* Asks the program that has started this one, once that waits, and each time thinks before. */
static inline int ask_parent(int port, int questions, long think_ms)
{
    char path[64], state = 0, answered;
    snprintf(path, sizeof(path), "/proc/%d/stat", getppid());
    while (state != 'S') {
        FILE *stat = fopen(path, "r");
        if (!stat || fscanf(stat, "%*d %*s %c", &state) != 1)
            return 85;
        fclose(stat);
    }
    int to = connect_to(port);
    for (int i = 0; i < questions; i++) {
        nap_ms(think_ms);
        if (write(to, "?", 1) != 1 || read(to, &answered, 1) != 1)
            return 86;
    }
    return 0;
}

static inline void watch(int set, int descriptor)
{
    struct epoll_event event = {.events = EPOLLIN, .data.fd = descriptor};
    if (epoll_ctl(set, EPOLL_CTL_ADD, descriptor, &event))
        exit(87);
}

/* Asks until nobody answers: each time for something quick, but for something slow every `slow` times, if that is not 0; with a pause after each
 * answer, if that is not 0. */
static inline int ask_until_silence(int port, int slow, int pause_us)
{
    int to = connect_to(port);
    char answered;
    for (int i = 1;; i++) {
        if (write(to, slow && i % slow == 0 ? "s" : "q", 1) != 1 || read(to, &answered, 1) != 1)
            return 0;
        if (pause_us)
            usleep(pause_us);
    }
}

/* The processor time of this thread. */
static inline long used_ns(void)
{
    struct timespec used;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    return used.tv_sec * 1000000000L + used.tv_nsec;
}
