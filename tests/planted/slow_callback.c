// Of five threads that parse their parts in the callback of a once, one has a part that is ten times as large. A once takes no
// time of its own (std::async and std::packaged_task run what they are given in one).
// cause: slow-threads
// group: parser
// says: in parse_part (slow_callback) at slow_callback.c:
// says: which pthread_once (libc.so.6) calls back
// size: told
#include "planted.h"

static pthread_once_t once[5] = {[0 ... 4] = PTHREAD_ONCE_INIT};
static long took[5];
static _Thread_local long number;

static long cpu_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return now.tv_sec * 1000000000L + now.tv_nsec;
}

__attribute__((noinline)) static void parse_part(void)
{
    work(number == 3 ? 200000000 : 20000000);
}

static void *parser(void *part)
{
    number = (long)part;
    long start = cpu_ns();
    pthread_once(&once[number], parse_part);
    took[number] = cpu_ns() - start;
    return NULL;
}

int main(void)
{
    run_threads(5, parser);
    tell_size(took[3] - (took[0] + took[1] + took[2] + took[4]) / 4);
    return 0;
}
