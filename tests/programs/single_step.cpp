/* Interrupts library calls at every single instruction, by the trap flag: at each, the handler
 * calls a library, and looks for the program's frames on the stack. What a signal handler at
 * 10 kHz hits by chance is all here. The first round of each kind of call is not interrupted: a
 * thread that blocks all signals while it does more work would not live through the trap.
 * usage: single_step ROUNDS DEPTH LOOK FILE; all is done inside of DEPTH calls. With LOOK 0 the handler
 * makes no other call of a library than the one that it counts. */
#include "trap.h"

#include <csetjmp>
#include <csignal>
#include <execinfo.h>

/* The functions whose frames the handler looks for. */
#define STEPPED __attribute__((section("stepped"), noinline))
extern "C" char __start_stepped[], __stop_stepped[];

static volatile long steps, lost;
static volatile bool looks;
static bool may_look;
static jmp_buf target;

static void handler(int)
{
    steps = steps + 1;
    trap_leaf(steps);
    if (!looks)
        return;
    void *frames[64];
    int count = backtrace(frames, 64);
    bool found = false;
    for (int i = 0; i < count; i++)
        found |= frames[i] >= __start_stepped && frames[i] < __stop_stepped;
    if (!found)
        lost = lost + 1;
}

static bool stepping;

static void trap_flag(bool on)
{
    if (!stepping)
        return;
    if (on)
        __asm__ volatile("pushfq; orq $0x100, (%%rsp); popfq" ::: "memory", "cc");
    else
        __asm__ volatile("pushfq; andq $~0x100, (%%rsp); popfq" ::: "memory", "cc");
}

static void adding(void *argument) { *static_cast<long *>(argument) = trap_add(1, 2); }
static void jumping(void *) { longjmp(target, 1); }
static void throwing(void *) { throw 7; }

STEPPED static long calls()
{
    long sum = 0;
    trap_flag(true);
    looks = may_look;
    trap_empty();
    trap_call(adding, &sum);
    struct pair pair = trap_swap({1, 2});
    looks = false;
    trap_flag(false);
    return sum + static_cast<long>(pair.x);
}

STEPPED static long jumps()
{
    if (setjmp(target) == 0) {
        trap_flag(true);
        trap_call(jumping, nullptr);
    }
    trap_flag(false);
    return 10;
}

STEPPED static long throws()
{
    int caught = 0;
    trap_flag(true);
    try {
        trap_call(throwing, nullptr);
    } catch (int number) {
        caught = number;
    }
    trap_flag(false);
    return caught;
}

static long rounds;

/* longjmp and the unwinder switch stacks by instructions that no unwind table describes. */
static long deeper(long depth)
{
    if (depth > 0)
        return trap_nest(depth - 1, deeper);
    long sum = 0;
    for (long i = 0; i < rounds; i++) {
        stepping = i > 0;
        sum += calls() + jumps() + throws();
    }
    return sum;
}

int main(int argc, char **argv)
{
    CHECK(argc == 5);
    void *frames[4];
    backtrace(frames, 4);
    struct sigaction action = {};
    action.sa_handler = handler;
    sigaction(SIGTRAP, &action, nullptr);
    rounds = atol(argv[1]);
    may_look = atol(argv[3]);
    long sum = deeper(atol(argv[2]));
    printf("sum %ld lost %ld\n", sum, lost);
    trap_tell(argv[4], "steps", steps);
    return 0;
}
