// A pool of threads that wait for one start signal, work evenly, and tell that they are done.
// cause: none
#include "planted.h"

static pthread_mutex_t start_mu = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t started = PTHREAD_COND_INITIALIZER;
static int go;

static void *worker(void *argument)
{
    pthread_mutex_lock(&start_mu);
    while (!go)
        pthread_cond_wait(&started, &start_mu);
    pthread_mutex_unlock(&start_mu);
    work(40000000);
    return argument;
}

int main(void)
{
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, worker, NULL);
    nap_ms(5);
    pthread_mutex_lock(&start_mu);
    go = 1;
    pthread_cond_broadcast(&started);
    pthread_mutex_unlock(&start_mu);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
