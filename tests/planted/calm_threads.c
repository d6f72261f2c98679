// A thread is made for each task, and the tasks are large enough for that.
// cause: none
#include "planted.h"

static _Atomic unsigned long sum;

static void *resize(void *task)
{
    atomic_fetch_add(&sum, work((unsigned long)task % 2 + 600000));
    return NULL;
}

int main(void)
{
    for (unsigned long task = 0; task < 400; task++) {
        pthread_t thread;
        pthread_create(&thread, NULL, resize, (void *)task);
        pthread_join(thread, NULL);
    }
    return sum == 1;
}
