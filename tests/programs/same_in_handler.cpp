/* At every single instruction of calls into a library, a signal handler calls the same functions: what the hook is in
 * the middle of changing for a function, the handler's call of it wants to change too. The first round is not
 * interrupted: a call of the handler in the middle of a new context has nowhere to be counted.
 * usage: same_in_handler ROUNDS FILE */
#include "trap.h"

#include <csignal>

static volatile long steps, leaves, adds, calls;

static void nothing(void *) {}

static void handler(int)
{
    switch (steps++ % 3) {
    case 0:
        leaves++;
        trap_leaf(steps);
        break;
    case 1:
        adds++;
        trap_add(steps, 1);
        break;
    default:
        calls++;
        trap_call(nothing, nullptr);
    }
}

static void trap_flag(bool on)
{
    if (on)
        __asm__ volatile("pushfq; orq $0x100, (%%rsp); popfq" ::: "memory", "cc");
    else
        __asm__ volatile("pushfq; andq $~0x100, (%%rsp); popfq" ::: "memory", "cc");
}

static void outer(void *) { trap_leaf(1); }

int main(int argc, char **argv)
{
    CHECK(argc == 3);
    struct sigaction action = {};
    action.sa_handler = handler;
    sigaction(SIGTRAP, &action, nullptr);
    /* Each kind of call in each context that there will be. */
    for (int i = 0; i < 3; i++) {
        handler(0);
        trap_call([](void *) { handler(0); handler(0); handler(0); }, nullptr);
        calls++;
    }
    long rounds = atol(argv[1]);
    for (long i = 0; i < rounds; i++) {
        if (i > 2)
            trap_flag(true);
        trap_leaf(i);
        trap_add(i, 2);
        trap_call(outer, nullptr);
        trap_flag(false);
        leaves += 2;
        adds++;
        calls++;
    }
    printf("ends\n");
    trap_tell(argv[2], "trap_leaf", leaves);
    trap_tell(argv[2], "trap_add", adds);
    trap_tell(argv[2], "trap_call", calls);
    trap_tell(argv[2], "steps", steps);
    return 0;
}
