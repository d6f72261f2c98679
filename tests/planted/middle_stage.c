// A pipeline of three stages, connected by pipes, whose middle is slow.
// cause: limiting-stage
// group: middle
// object: pipe
// waker: middle, in
// size: told
#include "planted.h"

enum { ITEMS = 60, ITEM = 8192 };

static int first[2], second[2];
static long waited[2];

static void transfer(int descriptor, int is_write)
{
    static __thread char buffer[ITEM];
    for (long done = 0, part; done < ITEM; done += part) {
        part = is_write ? write(descriptor, buffer + done, ITEM - done) : read(descriptor, buffer + done, ITEM - done);
        if (part <= 0)
            exit(1);
    }
}

static void *source(void *argument)
{
    for (int item = 0; item < ITEMS; item++) {
        work(300000);
        long start = now_ns();
        transfer(first[1], 1);
        waited[0] += now_ns() - start;
    }
    return argument;
}

static void *middle(void *argument)
{
    for (int item = 0; item < ITEMS; item++) {
        transfer(first[0], 0);
        work(1500000);
        transfer(second[1], 1);
    }
    return argument;
}

static void *sink(void *argument)
{
    for (int item = 0; item < ITEMS; item++) {
        long start = now_ns();
        transfer(second[0], 0);
        waited[1] += now_ns() - start;
        work(300000);
    }
    return argument;
}

int main(void)
{
    pthread_t threads[3];
    if (pipe(first) || pipe(second))
        return 1;
    pthread_create(&threads[0], NULL, source, NULL);
    pthread_create(&threads[1], NULL, middle, NULL);
    pthread_create(&threads[2], NULL, sink, NULL);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    tell_size(most(waited, 2));
    return 0;
}
