/* Threads that end in every way there is, in the middle of library callbacks, with cleanup
 * handlers that call libraries.
 * usage: cancel ROUNDS */
#define _GNU_SOURCE
#include "trap.h"

#include <pthread.h>
#include <semaphore.h>
#include <threads.h>
#include <unistd.h>

static sem_t ready, never;
static volatile bool sent;
static volatile int entered;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_key_t key;

static void cleanup(void *argument)
{
    (void)argument;
    trap_empty();
}

static void of_key(void *argument) { trap_add((long)argument, 1); }

static void wait_for_ever(void *argument)
{
    pthread_cleanup_push(cleanup, NULL);
    sem_post(&ready);
    sem_wait(argument);
    pthread_cleanup_pop(0);
}

static void *deferred(void *argument)
{
    pthread_setspecific(key, (void *)1);
    pthread_cleanup_push(cleanup, NULL);
    trap_call(wait_for_ever, argument);
    pthread_cleanup_pop(0);
    return NULL;
}

static void test_for_ever(void *argument)
{
    (void)argument;
    sem_post(&ready);
    for (;;)
        pthread_testcancel();
}

static void *tested(void *argument)
{
    trap_call(test_for_ever, argument);
    return NULL;
}

static void spin_for_ever(void *argument)
{
    (void)argument;
    sem_post(&ready);
    for (;;)
        trap_leaf(1);
}

static void *asynchronous(void *argument)
{
    /* Around the call: unwinding finds no cleanup from between two calls. */
    pthread_cleanup_push(cleanup, NULL);
    pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
    trap_call(spin_for_ever, argument);
    pthread_cleanup_pop(0);
    return NULL;
}

static void *in_library(void *argument)
{
    pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
    trap_forever(&entered);
    return argument;
}

static void *disabled(void *argument)
{
    (void)argument;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
    sem_post(&ready);
    while (!sent)
        usleep(100);
    trap_empty();
    pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
    pthread_testcancel();
    abort();
}

static void leave(void *argument)
{
    pthread_cleanup_push(cleanup, NULL);
    pthread_exit(argument);
    pthread_cleanup_pop(0);
}

static void *leaving(void *argument)
{
    pthread_setspecific(key, (void *)2);
    trap_call(leave, argument);
    return NULL;
}

static int of_c11(void *argument)
{
    trap_leaf((long)argument);
    return 11;
}

static void leave_c11(void *argument) { thrd_exit((int)(long)argument); }

static int leaving_c11(void *argument)
{
    trap_call(leave_c11, argument);
    return 0;
}

static long cancelled(void *(*routine)(void *))
{
    pthread_t thread;
    void *result;
    sent = false, entered = 0;
    CHECK(pthread_create(&thread, NULL, routine, &never) == 0);
    if (routine == in_library)
        while (!entered)
            usleep(10);
    else
        sem_wait(&ready);
    CHECK(pthread_cancel(thread) == 0);
    sent = true;
    pthread_join(thread, &result);
    return result == PTHREAD_CANCELED;
}

int main(int argc, char **argv)
{
    long rounds = atol(argv[argc - 1]), ended[8] = {0};
    sem_init(&ready, 0, 0);
    sem_init(&never, 0, 0);
    pthread_key_create(&key, of_key);
    for (long i = 0; i < rounds; i++) {
        ended[0] += cancelled(deferred);
        ended[1] += cancelled(tested);
        ended[2] += cancelled(asynchronous);
        ended[3] += cancelled(in_library);
        ended[4] += cancelled(disabled);
        pthread_t thread;
        void *result;
        CHECK(pthread_create(&thread, NULL, leaving, (void *)5) == 0);
        pthread_join(thread, &result);
        ended[5] += result == (void *)5;
        thrd_t other;
        int status;
        CHECK(thrd_create(&other, of_c11, (void *)1) == thrd_success);
        thrd_join(other, &status);
        ended[6] += status == 11;
        CHECK(thrd_create(&other, leaving_c11, (void *)12) == thrd_success);
        thrd_join(other, &status);
        ended[7] += status == 12;
    }
    pthread_mutex_lock(&lock);
    for (int i = 0; i < 8; i++)
        printf("%ld ", ended[i]);
    puts("");
    return 0;
}
