// Threads wait for their turn by giving the processor up again and again.
// cause: spinning
// also: too-many-threads
// group: worker
// site: spin_lock spinning.c
#include <sched.h>
#include "planted.h"

enum { ROUNDS = 60 };

static atomic_int next, served;

__attribute__((noinline)) static void spin_lock(void)
{
    int own = atomic_fetch_add(&next, 1);
    while (atomic_load(&served) != own)
        sched_yield();
}

static void *worker(void *self)
{
    for (int round = 0; round < ROUNDS; round++) {
        spin_lock();
        nap_ms(3);
        atomic_fetch_add(&served, 1);
        work(1000);
    }
    return self;
}

int main(void)
{
    run_threads(3, worker);
    return 0;
}
