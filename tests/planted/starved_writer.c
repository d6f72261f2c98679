// A writer that readers leave no room: one of them has the lock at any time.
// cause: starved-writer
// also: polling
// object: table_lock
// site: change starved_writer.c
// waker: reader, in pthread_rwlock_unlock
// size: told
#include "planted.h"

enum { READERS = 3, CHANGES = 3 };

pthread_rwlock_t table_lock = PTHREAD_RWLOCK_INITIALIZER;
static atomic_int done, reading, asked;
static atomic_long waited;

/* Whether a writer has waited for long enough. */
static int is_enough(void)
{
    return asked && now_ns() - waited > 100000000;
}

static void *reader(void *argument)
{
    while (!done) {
        while (is_enough() && !done)
            nap_ms(1);
        pthread_rwlock_rdlock(&table_lock);
        reading++;
        nap_ms(5);
        /* The next one comes before this one goes. */
        while (asked && reading < 2 && !done && !is_enough())
            nap_ms(1);
        reading--;
        pthread_rwlock_unlock(&table_lock);
    }
    return argument;
}

__attribute__((noinline)) static long change(void)
{
    long start = now_ns();
    waited = start;
    asked = 1; /* After it: readers look at both. */
    pthread_rwlock_wrlock(&table_lock);
    asked = 0;
    long took = now_ns() - start;
    pthread_rwlock_unlock(&table_lock);
    return took;
}

static void *writer(void *argument)
{
    long all = 0;
    for (int i = 0; i < CHANGES; i++) {
        while (reading < 2)
            nap_ms(1);
        all += change();
    }
    done = 1;
    tell_size(all);
    return argument;
}

int main(void)
{
    pthread_t threads[READERS + 1];
    for (int i = 0; i < READERS; i++)
        pthread_create(&threads[i], NULL, reader, NULL);
    pthread_create(&threads[READERS], NULL, writer, NULL);
    for (int i = 0; i <= READERS; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
