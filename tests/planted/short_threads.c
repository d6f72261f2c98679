// A thread is made for each task, and waited for; what it has to do takes less time than to make and to end it.
// cause: short-threads
// group: resize
// site: serve short_threads.c
// says: 4000 threads
#include "planted.h"

static _Atomic unsigned long sum;

static void *resize(void *task)
{
    atomic_fetch_add(&sum, work((unsigned long)task % 2 + 1000));
    return NULL;
}

__attribute__((noinline)) static void serve(unsigned long task)
{
    pthread_t thread;
    pthread_create(&thread, NULL, resize, (void *)task);
    pthread_join(thread, NULL);
}

int main(void)
{
    for (unsigned long task = 0; task < 4000; task++)
        serve(task);
    return sum == 1;
}
