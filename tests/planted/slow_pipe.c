// A pipe between two threads: the reader has nothing to do but to wait for what the writer works out.
// cause: limiting-stage
// group: generate
// object: pipe
// site: take slow_pipe.c
// waker: generate, in write
// size: told
#include "planted.h"

enum { ITEMS = 120 };

static int ends[2];
static long waited;

__attribute__((noinline)) static int take(long *item)
{
    long start = now_ns();
    int is_item = read(ends[0], item, sizeof *item) == sizeof *item;
    waited += now_ns() - start;
    return is_item;
}

static void *generate(void *argument)
{
    for (long item = 0; item < ITEMS; item++) {
        work(1000000);
        if (write(ends[1], &item, sizeof item) != sizeof item)
            exit(1);
    }
    close(ends[1]);
    return argument;
}

static void *add_up(void *argument)
{
    static volatile long sum;
    for (long item; take(&item);)
        sum += item;
    return argument;
}

int main(void)
{
    pthread_t writer, reader;
    if (pipe(ends))
        return 1;
    pthread_create(&writer, NULL, generate, NULL);
    pthread_create(&reader, NULL, add_up, NULL);
    pthread_join(writer, NULL);
    pthread_join(reader, NULL);
    tell_size(waited);
    return 0;
}
