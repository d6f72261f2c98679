// Readers of a read-write lock, which is never written while they read.
// cause: none
#include "planted.h"

static pthread_rwlock_t table_lock = PTHREAD_RWLOCK_INITIALIZER;
static volatile long table[64];

static void *reader(void *argument)
{
    for (int round = 0; round < 200; round++) {
        pthread_rwlock_rdlock(&table_lock);
        work(150000 + table[round % 64]);
        pthread_rwlock_unlock(&table_lock);
    }
    return argument;
}

int main(void)
{
    pthread_rwlock_wrlock(&table_lock);
    for (int i = 0; i < 64; i++)
        table[i] = i;
    pthread_rwlock_unlock(&table_lock);
    run_threads(2, reader);
    return 0;
}
