// Four threads share something that one of them may use at a time. Each waits at a condition of its own until the one before it lets
// it in, as at a monitor of a runtime.
// cause: mutual-waits
// group: worker
// site: enter monitor.c
// waker: worker, in pthread_cond_signal
// says: 4 threads of worker wait for each other
// says: pthread_cond_wait
// size: told
#include "planted.h"

enum { THREADS = 4, ROUNDS = 25, USE_MS = 3 };

static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t let_in[THREADS];
static int queue[THREADS], first, waiting, is_used, is_let_in[THREADS];
static long waited[THREADS];

static __attribute__((noinline)) void enter(int self)
{
    pthread_mutex_lock(&guard);
    if (is_used) {
        queue[(first + waiting++) % THREADS] = self;
        long start = now_ns();
        while (!is_let_in[self])
            pthread_cond_wait(&let_in[self], &guard);
        waited[self] += now_ns() - start;
        is_let_in[self] = 0;
    }
    is_used = 1;
    pthread_mutex_unlock(&guard);
}

static __attribute__((noinline)) void leave(void)
{
    pthread_mutex_lock(&guard);
    is_used = waiting > 0;
    if (is_used) {
        int next = queue[first];
        first = (first + 1) % THREADS;
        waiting--;
        is_let_in[next] = 1;
        pthread_cond_signal(&let_in[next]);
    }
    pthread_mutex_unlock(&guard);
}

static void *worker(void *self)
{
    for (int round = 0; round < ROUNDS; round++) {
        enter((int)(long)self);
        nap_ms(USE_MS);
        leave();
    }
    return NULL;
}

int main(void)
{
    for (int i = 0; i < THREADS; i++)
        pthread_cond_init(&let_in[i], NULL);
    run_threads(THREADS, worker);
    tell_size(most(waited, THREADS));
    return 0;
}
