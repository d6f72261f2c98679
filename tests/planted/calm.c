// Two workers that share work evenly, lock seldom, and are joined.
// cause: none
#include "planted.h"

static pthread_mutex_t sum_mu = PTHREAD_MUTEX_INITIALIZER;
static unsigned long sum;

static void *worker(void *argument)
{
    for (int item = 0; item < 20; item++) {
        unsigned long part = work(2000000);
        pthread_mutex_lock(&sum_mu);
        sum += part;
        pthread_mutex_unlock(&sum_mu);
    }
    return argument;
}

int main(void)
{
    run_threads(2, worker);
    return 0;
}
