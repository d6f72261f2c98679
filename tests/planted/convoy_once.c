// Each of three threads needs the lock once, for long. The last one to get it ends last: that is the same loss, told once.
// cause: serialising-lock
// group: worker
// object: file_mu
// site: save convoy_once.c
// holder: worker, in nanosleep
#include "planted.h"

static pthread_mutex_t file_mu = PTHREAD_MUTEX_INITIALIZER;

__attribute__((noinline)) static void save(void)
{
    pthread_mutex_lock(&file_mu);
    nap_ms(100);
    pthread_mutex_unlock(&file_mu);
}

static void *worker(void *self)
{
    nap_ms(5 * (long)self);
    save();
    return NULL;
}

int main(void)
{
    run_threads(3, worker);
    return 0;
}
