// A server of three processes, in each of which one thread hands requests to four others. All threads begin in the same
// function, as those of a server's portable layer do.
// cause: none
#include <sys/wait.h>
#include "planted.h"

enum { PROCESSES = 3, WORKERS = 4, REQUESTS = 100 };

static pthread_mutex_t queue = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t is_full = PTHREAD_COND_INITIALIZER, is_idle = PTHREAD_COND_INITIALIZER;
static int waiting, idle;

static void answer(void)
{
    for (;;) {
        pthread_mutex_lock(&queue);
        idle++;
        pthread_cond_signal(&is_idle);
        while (waiting == 0)
            pthread_cond_wait(&is_full, &queue);
        waiting--;
        idle--;
        pthread_mutex_unlock(&queue);
        work(100000);
    }
}

static void listen_for_requests(void)
{
    for (int request = 0; request < REQUESTS; request++) {
        nap_ms(4);
        pthread_mutex_lock(&queue);
        while (idle == 0)
            pthread_cond_wait(&is_idle, &queue);
        waiting++;
        pthread_cond_signal(&is_full);
        // The next one comes when this one is answered: with one client, that is the usual case.
        while (idle < WORKERS || waiting > 0)
            pthread_cond_wait(&is_idle, &queue);
        pthread_mutex_unlock(&queue);
    }
}

static void *begin(void *argument)
{
    if (argument)
        answer();
    else
        listen_for_requests();
    return NULL;
}

static int serve(void)
{
    pthread_t threads[1 + WORKERS];
    for (long i = 0; i <= WORKERS; i++)
        pthread_create(&threads[i], NULL, begin, (void *)i);
    pthread_join(threads[0], NULL);
    return 0;
}

int main(void)
{
    for (int i = 0; i < PROCESSES; i++)
        if (fork() == 0)
            exit(serve());
    while (wait(NULL) > 0)
        ;
    return 0;
}
