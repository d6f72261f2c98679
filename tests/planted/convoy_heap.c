// A convoy on a mutex of an account on the heap, which has no name; another account's mutex is taken as often.
// cause: serialising-lock
// object: (taken in pay_in convoy_heap.c:
// site: pay_in convoy_heap.c
// holder: worker, in nanosleep
// size: told
#include <stdlib.h>
#include "planted.h"

enum { THREADS = 4, ROUNDS = 10 };

struct account {
    long balance;
    pthread_mutex_t guard;
};

static struct account *busy, *idle;
static long waited[THREADS];

__attribute__((noinline)) static void pay_in(struct account *account, long self)
{
    long start = now_ns();
    pthread_mutex_lock(&account->guard);
    waited[self] += now_ns() - start;
    account->balance++;
    nap_ms(8);
    pthread_mutex_unlock(&account->guard);
}

__attribute__((noinline)) static void look_up(struct account *account)
{
    pthread_mutex_lock(&account->guard);
    account->balance++;
    pthread_mutex_unlock(&account->guard);
}

static void *worker(void *self)
{
    for (int round = 0; round < ROUNDS; round++) {
        look_up(idle);
        pay_in(busy, (long)self);
    }
    return NULL;
}

static struct account *open_account(void)
{
    struct account *account = calloc(1, sizeof *account);
    pthread_mutex_init(&account->guard, NULL);
    return account;
}

int main(void)
{
    busy = open_account();
    idle = open_account();
    run_threads(THREADS, worker);
    tell_size(most(waited, THREADS));
    return 0;
}
