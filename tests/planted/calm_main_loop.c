// Two short threads get things ready; a third one is the program, and hears of what there is to do. The first one joins all.
// cause: none
#include "planted.h"

static int requests[2];

static void *prepare(void *self)
{
    nap_ms(30);
    return self;
}

static void *check(void *self)
{
    nap_ms(20);
    return self;
}

static void *serve(void *self)
{
    char request;
    while (read(requests[0], &request, 1) == 1)
        work(2000000);
    return self;
}

/* Asks now and then, in a process of its own. */
static void ask(void)
{
    close(requests[0]);
    for (int i = 0; i < 10; i++) {
        nap_ms(40);
        if (write(requests[1], "r", 1) != 1)
            _exit(1);
    }
    _exit(0);
}

int main(void)
{
    if (pipe(requests))
        return 1;
    if (fork() == 0)
        ask();
    close(requests[1]);
    void *(*const parts[])(void *) = {prepare, serve, check};
    pthread_t threads[3];
    for (int i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, parts[i], NULL);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
