// Threads of two kinds: one computes, one waits for a signal that ends it all.
// cause: none
#include <signal.h>
#include "planted.h"

static sigset_t ends;

static void *keeper(void *argument)
{
    int number;
    sigwait(&ends, &number);
    return argument;
}

int main(void)
{
    pthread_t thread;
    sigemptyset(&ends);
    sigaddset(&ends, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &ends, NULL);
    pthread_create(&thread, NULL, keeper, NULL);
    work(100000000);
    pthread_kill(thread, SIGUSR1);
    pthread_join(thread, NULL);
    return 0;
}
