/* Many calls of hot leaves, in all the ways in which a program or a thread can leave off. Tells how
 * many were made.
 * usage: exact HOW FILE */
#define _GNU_SOURCE
#include "trap.h"

#include <dlfcn.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

enum { MANY = 300007, FEW = 70001 };

#ifdef OWN_STORAGE
/* So much of its own that the hook's words are elsewhere than its stubs expect them. */
static __thread volatile char own[OWN_STORAGE];
#endif

static const char *file;
static long made;

static void tell(const char *what, long calls) { trap_tell(file, what, calls); }

static void call(long calls)
{
    for (long i = 0; i < calls; i++)
        trap_empty();
    made += calls;
}

/* ---- threads that return, exit, are cancelled, or are there when the process ends */

static volatile long ready;

static void *worker(void *argument)
{
    long how = (long)argument;
    for (long i = 0; i < MANY + how; i++)
        trap_add(i, how);
    __atomic_add_fetch(&ready, 1, __ATOMIC_SEQ_CST);
    if (how == 1)
        pthread_exit(NULL);
    while (how >= 2)
        pause();
    return NULL;
}

static void threads(void)
{
    pthread_t all[4];
    for (long how = 0; how < 4; how++)
        CHECK(pthread_create(&all[how], NULL, worker, (void *)how) == 0);
    call(MANY);
    while (ready < 4)
        usleep(1000);
    pthread_cancel(all[2]);
    for (int i = 0; i < 3; i++)
        pthread_join(all[i], NULL);
    tell("trap_add", 4 * MANY + 6);
}

static volatile long steps;

static void *endless(void *argument)
{
    (void)argument;
    pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
    for (;;) {
        trap_add(1, 2);
        steps++;
    }
}

static void cancelled(void)
{
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, endless, NULL) == 0);
    while (steps < MANY)
        usleep(1000);
    pthread_cancel(thread);
    pthread_join(thread, NULL);
    tell("trap_add", steps);
}

/* ---- processes that multiply, or become another program */

static void forks(void)
{
    call(MANY);
    pid_t child = fork();
    if (child == 0) {
        made = 0;
        call(FEW);
        tell("child", made);
        _exit(0);
    }
    call(FEW + 5);
    CHECK(waitpid(child, NULL, 0) == child);
    call(3);
    child = vfork();
    if (child == 0) {
        trap_empty();
        _exit(0);
    }
    made++;
    CHECK(waitpid(child, NULL, 0) == child);
    call(11);
}

static void becomes(const char *self)
{
    call(MANY);
    execl("/nonexistent", "nothing", (char *)NULL);
    call(FEW);
    tell("first", made);
    execl(self, self, "again", file, (char *)NULL);
}

/* ---- loading */

static void loads(void)
{
    for (int i = 0; i < 20; i++) {
        call(FEW + i);
        void *handle = dlopen("libm.so.6", RTLD_NOW | RTLD_LOCAL);
        CHECK(handle != NULL);
        call(17);
        dlclose(handle);
    }
}

/* ---- calls that do not return, or not when and where they should */

static sigjmp_buf escape;
static long every;

static void sometimes_jump(void *argument)
{
    if (every && *(long *)argument % every == 0)
        siglongjmp(escape, 1);
}

static void jumps(void)
{
    volatile long jumped = 0;
    long i;
    for (i = 0; i < MANY; i++)
        trap_call(sometimes_jump, &i);
    every = 100;
    static volatile long k;
    for (k = 0; k < FEW; k++) {
        if (sigsetjmp(escape, 0) == 0) {
            long at = k;
            trap_call(sometimes_jump, &at);
        } else {
            jumped++;
        }
    }
    tell("trap_call", MANY + FEW);
    tell("jumped", jumped);
}

static ucontext_t outside, inside;
static char stack[1 << 16];
static volatile int finished;

static void suspend(void *argument)
{
    if (*(long *)argument % 50 == 0 && *(long *)argument >= MANY)
        swapcontext(&inside, &outside);
}

static void coroutine(void)
{
    for (long i = 0; i < MANY + FEW; i++)
        trap_call(suspend, &i);
    finished = 1;
    swapcontext(&inside, &outside);
}

static void *resume(void *argument)
{
    (void)argument;
    for (int i = 0; i < 100 && !finished; i++) {
        call(3);
        swapcontext(&outside, &inside);
    }
    return NULL;
}

static void coroutines(void)
{
    getcontext(&inside);
    inside.uc_stack.ss_sp = stack;
    inside.uc_stack.ss_size = sizeof stack;
    makecontext(&inside, coroutine, 0);
    while (!finished) {
        /* In turns here and on another thread. */
        resume(NULL);
        pthread_t thread;
        CHECK(pthread_create(&thread, NULL, resume, NULL) == 0);
        pthread_join(thread, NULL);
    }
    tell("trap_call", MANY + FEW);
}

/* ---- an occasional call inside, after a long time without */

static void rarely_call(void *argument)
{
    if (*(long *)argument > MANY && *(long *)argument % 10 == 0)
        trap_add(1, 2);
}

static void children(void)
{
    for (long i = 0; i < 2 * MANY; i++)
        trap_call(rarely_call, &i);
    tell("trap_call", 2 * MANY);
    tell("trap_add", (2 * MANY - 1) / 10 - MANY / 10);
}

/* ---- a function whose first calls of each turn call another one */

static void call_at_first(void *argument)
{
    long i = *(long *)argument % MANY;
    if (i < 100)
        trap_add(i, 1);
}

static void turns(void)
{
    for (long i = 0; i < 4 * MANY; i++)
        trap_call(call_at_first, &i);
    tell("trap_call", 4 * MANY);
    tell("trap_add", 4 * 100);
}

/* ---- the end of the process */

__attribute__((destructor)) static void at_the_end(void)
{
    if (made > 0)
        for (int i = 0; i < FEW; i++)
            trap_halve(1);
}

static void ends(void)
{
    call(MANY);
    for (int i = 0; i < MANY; i++)
        trap_halve(1);
    tell("trap_halve", MANY + FEW);
}

/* ---- handlers that leave */

static volatile long escapes;

static void leave(int signal)
{
    (void)signal;
    escapes++;
    siglongjmp(escape, 1);
}

static void handlers(void)
{
    struct sigaction action = {.sa_handler = leave};
    sigaction(SIGALRM, &action, NULL);
    static volatile long announced;
    static volatile int armed;
    for (int i = 0; i < 300; i++) {
        if (sigsetjmp(escape, 1) == 0) {
            ualarm(1000 + i % 7 * 100, 0);
            armed = 1;
            for (;;) {
                announced++;
                trap_empty();
            }
        }
    }
    (void)armed;
    tell("announced", announced);
    tell("escapes", escapes);
}

/* Enough of them that those by which chase learns how often the calls come are few. */
#define REQUESTS 600

/* A thread of a server: it mostly waits, and makes many short calls when it does not. */
static void *servant(void *argument)
{
    (void)argument;
    for (int request = 0; request < REQUESTS; request++) {
        usleep(2000);
        for (long i = 0; i < 100; i++)
            trap_add(i, 1);
    }
    return NULL;
}

static void waiting(void)
{
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, servant, NULL) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
    tell("trap_add", REQUESTS * 100);
}

int main(int argc, char **argv)
{
#ifdef OWN_STORAGE
    own[0] = 1;
#endif
    CHECK(argc == 3);
    const char *how = argv[1];
    file = argv[2];
    if (strcmp(how, "threads") == 0)
        threads();
    else if (strcmp(how, "cancelled") == 0)
        cancelled();
    else if (strcmp(how, "forks") == 0)
        forks();
    else if (strcmp(how, "becomes") == 0)
        becomes(argv[0]);
    else if (strcmp(how, "again") == 0)
        call(FEW);
    else if (strcmp(how, "loads") == 0)
        loads();
    else if (strcmp(how, "jumps") == 0)
        jumps();
    else if (strcmp(how, "coroutines") == 0)
        coroutines();
    else if (strcmp(how, "children") == 0)
        children();
    else if (strcmp(how, "turns") == 0)
        turns();
    else if (strcmp(how, "ends") == 0)
        ends();
    else if (strcmp(how, "handlers") == 0)
        handlers();
    else if (strcmp(how, "waiting") == 0)
        waiting();
    else
        return 2;
    tell("trap_empty", made);
    return 0;
}
