/* Calls a library with a known value in every register that a callee must preserve; the library looks
 * whether they are still there. Conservative garbage collectors need that: what they scan are the registers and the
 * stack, and what was moved elsewhere during a call would be freed.
 * usage: kept ROUNDS */
#include "trap.h"

#include <pthread.h>
#include <setjmp.h>
#include <stddef.h>
#include <string.h>

extern struct expected {
    uint64_t general[6]; /* rbx rbp r12 r13 r14 r15 */
    uint32_t mxcsr;
    uint16_t x87_control, unused;
    uint64_t unused_too;
    uint64_t wrong, looks;
} kept_expected;

#ifdef ROOM
/* Thread-local storage of the program's own, which takes the place of the hook's. */
static _Thread_local volatile char room[ROOM] = {1};
#endif

#ifdef BY_GOT
#define CALL(name) "call *" #name "@GOTPCREL(%rip)"
#else
#define CALL(name) "call " #name "@PLT"
#endif

/* Loads the registers from `in`, and those of arguments from `arguments`; calls; stores them in `out`. */
#define CALLER(name)                                                                               \
    void with_##name(const struct expected *in, const uint64_t *arguments, struct expected *out); \
    __asm__(".text\n"                                                                              \
            ".type with_" #name ", @function\n"                                                    \
            "with_" #name ":\n"                                                                    \
            "  push %rbp; push %rbx; push %r12; push %r13; push %r14; push %r15; push %rdx\n"      \
            "  sub $16, %rsp; stmxcsr (%rsp); fnstcw 4(%rsp)\n"                                    \
            "  mov 0(%rdi), %rbx; mov 8(%rdi), %rbp; mov 16(%rdi), %r12; mov 24(%rdi), %r13\n"     \
            "  mov 32(%rdi), %r14; mov 40(%rdi), %r15; ldmxcsr 48(%rdi); fldcw 52(%rdi)\n"         \
            "  mov 0(%rsi), %rdi; mov 16(%rsi), %rdx; mov 24(%rsi), %rcx; mov 8(%rsi), %rsi\n"     \
            "  " CALL(name) "\n"                                                                   \
            "  mov 16(%rsp), %rsi\n"                                                               \
            "  mov %rbx, 0(%rsi); mov %rbp, 8(%rsi); mov %r12, 16(%rsi); mov %r13, 24(%rsi)\n"     \
            "  mov %r14, 32(%rsi); mov %r15, 40(%rsi); stmxcsr 48(%rsi); fnstcw 52(%rsi)\n"        \
            "  ldmxcsr (%rsp); fldcw 4(%rsp); add $24, %rsp\n"                                     \
            "  pop %r15; pop %r14; pop %r13; pop %r12; pop %rbx; pop %rbp\n"                       \
            "  ret\n");

#define HOT(each) each(kept_plain) each(kept_outer) each(kept_tail)
#if __GLIBC_PREREQ(2, 34)
#define CLONE(each) each(__clone)
#else /* libpthread calls this one. */
#define CLONE(each)
#endif
#define SPECIAL(each)                                                                              \
    each(co_switch) each(jump_fcontext) each(thrd_exit) each(_longjmp) each(thrd_create)           \
        CLONE(each) each(dlmopen) each(dlclose) each(dlvsym) each(_Fork) each(syscall) each(prctl)
#define ONCE(each)                                                                                 \
    each(kept_once_0) each(kept_once_1) each(kept_once_2) each(kept_once_3) each(kept_once_4)      \
        each(kept_once_5) each(kept_once_6) each(kept_once_7) each(kept_once_8) each(kept_once_9)  \
            each(kept_once_10) each(kept_once_11) each(kept_once_12) each(kept_once_13)            \
                each(kept_once_14) each(kept_once_15)
HOT(CALLER)
SPECIAL(CALLER)
ONCE(CALLER)

typedef void caller(const struct expected *, const uint64_t *, struct expected *);
#define ENTRY(name) {with_##name, #name},
static const struct entry {
    caller *with;
    const char *name;
} hot[] = {HOT(ENTRY)}, special[] = {SPECIAL(ENTRY)}, once[] = {ONCE(ENTRY)};
#define LENGTH(list) (int)(sizeof(list) / sizeof *(list))

static void look(const struct entry *entry, uint64_t seed)
{
    /* The modes of rounding, of denormal numbers, and of precision; exceptions stay masked. */
    static const uint32_t mxcsr[] = {0x1f80, 0x3fa3, 0xdfc0, 0xffff};
    static const uint16_t x87_control[] = {0x037f, 0x077f, 0x0a7f, 0x0c7f};
    for (uint64_t i = 0; i < 6; i++)
        kept_expected.general[i] = 0x0123456789abcdefULL * (seed * 6 + i + 1);
    kept_expected.mxcsr = mxcsr[seed / 3 % 4];
    kept_expected.x87_control = x87_control[seed / 5 % 4];

    /* A jump's target, which leaves no call behind, a system call, or a handle; modes. */
    jmp_buf here;
    CHECK(setjmp(here) == 0);
    const uint64_t arguments[4] = {(uint64_t)&here};

    struct expected after = {.unused = 0};
    uint64_t looks = kept_expected.looks;
    entry->with(&kept_expected, arguments, &after);
    if (kept_expected.wrong != 0)
        fprintf(stderr, "%s did not find all registers\n", entry->name);
    CHECK(kept_expected.wrong == 0 && kept_expected.looks > looks);
    CHECK(memcmp(&after, &kept_expected, offsetof(struct expected, unused)) == 0);
}

static long rounds;

/* From a callback, too: in a call of a call. */
static void some(void *argument)
{
    uint64_t seed = (uint64_t)(long)argument;
    for (int i = 0; i < LENGTH(hot); i++)
        look(&hot[i], seed);
    if (seed % 64 == 0)
        for (int i = 0; i < LENGTH(special); i++)
            look(&special[i], seed);
}

static void *all(void *first)
{
    for (long i = (long)first; i < rounds; i += 2) {
        some((void *)i);
        if (i % 8 < 2)
            trap_call(some, (void *)(i + rounds));
    }
    return NULL;
}

int main(int argc, char **argv)
{
    rounds = atol(argv[argc - 1]);
#ifdef ROOM
    CHECK(room[0] == 1);
#endif
    for (int i = 0; i < LENGTH(once); i++)
        look(&once[i], (uint64_t)i);
    pthread_t thread;
    for (long i = 0; i < 2; i++) {
        CHECK(pthread_create(&thread, NULL, all, (void *)i) == 0);
        CHECK(pthread_join(thread, NULL) == 0);
        all((void *)i);
    }
    puts("all in their places");
    return 0;
}
