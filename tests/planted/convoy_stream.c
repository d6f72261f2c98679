// A stream's own lock is kept while something slow happens; others want to write to it.
// cause: serialising-lock
// group: worker
// site: say convoy_stream.c
// says: fputs
#include "planted.h"

enum { THREADS = 3, ROUNDS = 25 };

static FILE *out;
static atomic_int done;

__attribute__((noinline)) static void say(void)
{
    fputs("a line\n", out);
}

static void *worker(void *argument)
{
    while (!done) {
        say();
        nap_ms(1);
    }
    return argument;
}

static void *keeper(void *argument)
{
    for (int round = 0; round < ROUNDS; round++) {
        flockfile(out);
        nap_ms(12);
        funlockfile(out);
        nap_ms(1);
    }
    done = 1;
    return argument;
}

int main(void)
{
    pthread_t thread;
    out = fopen("/dev/null", "w");
    pthread_create(&thread, NULL, keeper, NULL);
    run_threads(THREADS, worker);
    pthread_join(thread, NULL);
    fclose(out);
    return 0;
}
