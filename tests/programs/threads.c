/* Many threads: CONCURRENT of them at once, then SHORT ones one after another, four at a time.
 * usage: threads CONCURRENT SHORT CALLS */
#include "trap.h"

#include <pthread.h>

static pthread_barrier_t barrier;
static long calls;

static void *concurrent(void *argument)
{
    long sum = (long)argument;
    pthread_barrier_wait(&barrier);
    for (long i = 0; i < calls; i++)
        sum = trap_add(sum, 1);
    pthread_barrier_wait(&barrier);
    return (void *)sum;
}

static void *brief(void *argument)
{
    long sum = (long)argument;
    for (long i = 0; i < calls; i++)
        sum = trap_leaf(sum) % 1000;
    return (void *)sum;
}

/* GCC's std::thread passes this function where libpthread is apart, to nobody who looks at it. */
__attribute__((noinline)) static void pass_on(int (*create)(pthread_t *, const pthread_attr_t *,
                                                            void *(*)(void *), void *))
{
    __asm__ volatile("" : : "r"(create));
}

int main(int argc, char **argv)
{
    CHECK(argc == 4);
#ifdef PASSED_ON
    pass_on(pthread_create);
#else
    (void)pass_on;
#endif
    long many = atol(argv[1]), brief_ones = atol(argv[2]), sum = 0;
    calls = atol(argv[3]);
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 64 << 10);
    pthread_barrier_init(&barrier, NULL, (unsigned)many + 1);
    pthread_t *threads = calloc((size_t)many + 4, sizeof *threads);
    for (long i = 0; i < many; i++)
        CHECK(pthread_create(&threads[i], &attributes, concurrent, (void *)i) == 0);
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);
    for (long i = 0; i < many; i++) {
        void *result;
        pthread_join(threads[i], &result);
        sum += (long)result;
    }
    for (long i = 0; i < brief_ones; i += 4) {
        for (long k = 0; k < 4; k++)
            CHECK(pthread_create(&threads[k], &attributes, brief, (void *)k) == 0);
        for (long k = 0; k < 4; k++) {
            void *result;
            pthread_join(threads[k], &result);
            sum += (long)result;
        }
    }
    printf("sum %ld\n", sum);
    return 0;
}
