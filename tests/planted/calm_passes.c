// Threads are started for each pass, and their parts take about as long as each other.
// cause: none
#include "planted.h"

enum { PASSES = 10, PARTS = 2 };

static void *render(void *part)
{
    work(12000000);
    return part;
}

int main(void)
{
    for (int pass = 0; pass < PASSES; pass++) {
        pthread_t threads[PARTS];
        for (long part = 0; part < PARTS; part++)
            pthread_create(&threads[part], NULL, render, (void *)part);
        for (int part = 0; part < PARTS; part++)
            pthread_join(threads[part], NULL);
    }
    return 0;
}
