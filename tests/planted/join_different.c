// Three threads that do different things are started together and joined; one of them works long after the others are done.
// cause: last-to-end
// group: load_index
// site: main join_different.c
// says: while it runs build_index
#include "planted.h"

__attribute__((noinline)) static void build_index(void)
{
    long start = now_ns();
    while (now_ns() - start < 600000000)
        work(1000000);
}

static void *load_icons(void *self)
{
    nap_ms(60);
    return self;
}

static void *load_index(void *self)
{
    build_index();
    return self;
}

static void *load_fonts(void *self)
{
    nap_ms(90);
    return self;
}

int main(void)
{
    void *(*const load[])(void *) = {load_icons, load_index, load_fonts};
    pthread_t threads[3];
    for (int i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, load[i], NULL);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
