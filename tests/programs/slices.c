/* Coroutines that run on slices of one stack, which are copied away and back, as greenlet does, and give way in the
 * middle of calls of libraries, in an order that a seed decides. Some jump out of such calls, and a few are never
 * gone on with. Threads that do so end while others go on.
 * usage: slices ROUNDS SEED */
#include "trap.h"

#include <pthread.h>
#include <setjmp.h>
#include <string.h>

enum { COROUTINES = 24, CALLS = 40, DEEPEST = 4, THREADS = 12 };

struct coroutine {
    void *registers[8];
    char *copy;
    size_t length;
    enum { FRESH, BEGUN, DONE } state;
    uint64_t seed, value;
};

/* Where the slices end, the stack of the scheduler is above. */
static _Thread_local char *end_of_slices, *scratch;
static _Thread_local void *scheduler[8];
static _Thread_local struct coroutine *current;
static _Thread_local jmp_buf out;
static long rounds;
static uint64_t first_seed;

static uint64_t draw(uint64_t *seed)
{
    *seed = *seed * 6364136223846793005ULL + 1442695040888963407ULL;
    return *seed >> 33;
}

/* Notes where this thread is, like setjmp, and goes on there; and calls a function on another stack. */
__attribute__((returns_twice)) int mark(void **registers);
__attribute__((noreturn)) void go_on(void **registers);
__attribute__((noreturn)) void run_on(char *stack, void (*function)(struct coroutine *),
                                      struct coroutine *argument);
__asm__(".text\n"
        "mark:\n"
        "  mov %rbx, (%rdi); mov %rbp, 8(%rdi); mov %r12, 16(%rdi); mov %r13, 24(%rdi)\n"
        "  mov %r14, 32(%rdi); mov %r15, 40(%rdi); lea 8(%rsp), %rax; mov %rax, 48(%rdi)\n"
        "  mov (%rsp), %rax; mov %rax, 56(%rdi); xor %eax, %eax; ret\n"
        "go_on:\n"
        "  mov (%rdi), %rbx; mov 8(%rdi), %rbp; mov 16(%rdi), %r12; mov 24(%rdi), %r13\n"
        "  mov 32(%rdi), %r14; mov 40(%rdi), %r15; mov 48(%rdi), %rsp; mov $1, %eax\n"
        "  jmp *56(%rdi)\n"
        "run_on:\n"
        "  mov %rdi, %rsp; and $-16, %rsp; mov %rdx, %rdi; call *%rsi; ud2\n");

__attribute__((noinline)) static void give_way(void)
{
    struct coroutine *this = current;
    if (mark(this->registers) == 0) {
        const char *start = (char *)this->registers[6] - 128;
        this->length = (size_t)(end_of_slices - start);
        this->copy = realloc(this->copy, this->length);
        memcpy(this->copy, start, this->length);
        go_on(scheduler);
    }
}

static void copy_back(struct coroutine *this)
{
    memcpy(end_of_slices - this->length, this->copy, this->length);
    current = this;
    go_on(this->registers);
}

static uint64_t work(int depth);

static int compare(const void *a, const void *b)
{
    uint64_t what = draw(&current->seed) % 16;
    if (what < 3)
        give_way();
    else if (what == 3)
        trap_empty();
    else if (what == 4)
        work(DEEPEST - 1);
    return *(const int *)a - *(const int *)b;
}

static void jump_at_last(void *argument)
{
    (void)argument;
    if (draw(&current->seed) % 3 == 0)
        longjmp(out, 1);
}

static long give_way_below(long depth)
{
    if (depth % 2)
        give_way();
    return depth > 0 ? trap_nest(depth - 1, give_way_below) : 0;
}

static uint64_t work(int depth)
{
    int values[6];
    switch (draw(&current->seed) % (depth < DEEPEST - 1 ? 5 : 3)) {
    case 0:
        return (uint64_t)trap_add(depth, (long)draw(&current->seed) % 100);
    case 1:
        if (setjmp(out) != 0)
            return 1;
        trap_call(jump_at_last, NULL);
        return 2;
    case 2:
        give_way();
        return depth < DEEPEST ? 3 * work(depth + 1) : 4;
    case 3:
        return (uint64_t)trap_nest(3, give_way_below);
    default:
        for (int i = 0; i < 6; i++)
            values[i] = (int)draw(&current->seed) % 100;
        qsort(values, 6, sizeof *values, compare);
        for (int i = 1; i < 6; i++)
            CHECK(values[i - 1] <= values[i]);
        return (uint64_t)values[3];
    }
}

static void body(struct coroutine *this)
{
    for (int i = 0; i < CALLS; i++)
        this->value = this->value * 31 + work(0);
    this->state = DONE;
    go_on(scheduler);
}

static void resume(struct coroutine *this)
{
    if (mark(scheduler) != 0)
        return;
    if (this->state != FRESH)
        run_on(scratch, copy_back, this);
    this->state = BEGUN;
    current = this;
    run_on(end_of_slices, body, this);
}

/* Calls on the scheduler's stack, above the slices or where they were. */
__attribute__((noinline)) static void others(uint64_t room)
{
    volatile char stack[room + 64];
    stack[0] = 1;
    uint64_t seed = room;
    trap_nest(2, labs);
    trap_add((long)draw(&seed), stack[0]);
}

static uint64_t round_of(uint64_t seed)
{
    struct coroutine all[COROUTINES];
    memset(all, 0, sizeof all);
    for (uint64_t i = 0; i < COROUTINES; i++)
        all[i].seed = seed * COROUTINES + i;
    uint64_t dropped = draw(&seed) % 3, sum = 0;
    for (uint64_t left = COROUTINES; left > dropped;) {
        struct coroutine *next = &all[draw(&seed) % COROUTINES];
        if (next->state == DONE)
            continue;
        resume(next);
        left -= next->state == DONE;
        if (draw(&seed) % 4 == 0)
            others(draw(&seed) % 100000);
    }
    for (int i = 0; i < COROUTINES; i++) {
        sum = sum * 7 + (all[i].state == DONE ? all[i].value : 1);
        free(all[i].copy);
    }
    return sum;
}

static uint64_t sums[THREADS];

static void *run(void *sum)
{
    end_of_slices = (char *)__builtin_frame_address(0) - 40000;
    char *memory = malloc(65536);
    scratch = memory + 65536;
    uint64_t thread = (uint64_t)((uint64_t *)sum - sums);
    for (uint64_t i = 0; i < (uint64_t)rounds; i++)
        sums[thread] = sums[thread] * 7 + round_of(first_seed + i * THREADS + thread);
    free(memory);
    return NULL;
}

int main(int argc, char **argv)
{
    CHECK(argc == 3);
    rounds = atol(argv[1]);
    first_seed = (uint64_t)atol(argv[2]);
    run(&sums[0]);
    /* Each is created when the one before the latest has ended. */
    pthread_t threads[THREADS];
    for (int i = 1; i < THREADS; i++) {
        CHECK(pthread_create(&threads[i], NULL, run, &sums[i]) == 0);
        if (i > 2)
            CHECK(pthread_join(threads[i - 2], NULL) == 0);
    }
    for (int i = THREADS - 2; i < THREADS; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    for (int i = 0; i < THREADS; i++)
        printf("thread %d: %lx\n", i, (unsigned long)sums[i]);
    return 0;
}
