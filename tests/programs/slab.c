/* A thread's stack and a coroutine's in one mapping: what lies deeper is not always the same stack. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

enum { SLAB = 1 << 20, ROUNDS = 50 };

static ucontext_t outside, inside;
static char *slab;
static int rounds;

static int leave(const void *a, const void *b)
{
    (void)a, (void)b;
    swapcontext(&inside, &outside);
    return 0;
}

static void coroutine(void)
{
    int numbers[] = {2, 1};
    for (;;) {
        qsort(numbers, 2, sizeof(int), leave);
        rounds++;
    }
}

static int ask(const void *a, const void *b)
{
    (void)a, (void)b;
    return getppid() < 0;
}

static void *thread(void *argument)
{
    int numbers[] = {1, 2};
    getcontext(&inside);
    inside.uc_stack.ss_sp = slab;
    inside.uc_stack.ss_size = SLAB / 8;
    inside.uc_link = NULL;
    makecontext(&inside, coroutine, 0);
    for (int i = 0; i < ROUNDS; i++) {
        swapcontext(&outside, &inside);
        qsort(numbers, 2, sizeof(int), ask);
    }
    return argument;
}

int main(void)
{
    pthread_t id;
    pthread_attr_t attributes;
    slab = mmap(NULL, SLAB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    pthread_attr_init(&attributes);
    pthread_attr_setstack(&attributes, slab + SLAB / 2, SLAB / 2);
    pthread_create(&id, &attributes, thread, NULL);
    pthread_join(id, NULL);
    printf("%d\n", rounds);
    return 0;
}
