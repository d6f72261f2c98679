// Many more threads than processors, all of which have something to do.
// cause: too-many-threads
// group: worker
#include "planted.h"

static pthread_barrier_t start;

static void *worker(void *argument)
{
    pthread_barrier_wait(&start);
    work(8000000);
    return argument;
}

int main(void)
{
    int threads = 6 * (int)sysconf(_SC_NPROCESSORS_ONLN);
    threads = threads > 64 ? 64 : threads;
    pthread_barrier_init(&start, NULL, (unsigned)threads);
    run_threads(threads, worker);
    return 0;
}
