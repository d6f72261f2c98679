/* Calls a library with a known value in every register that can hold an argument, among them rax
 * (the number of vector registers of a variadic call) and r10 (the static chain), and looks at
 * every register that can hold a result.
 * usage: registers ROUNDS */
#include "trap.h"

#include <string.h>

#ifndef RECORD
#define RECORD record_registers
#endif
#define TEXT(name) #name
#define CALL(name) "  call " TEXT(name) "@PLT\n"

extern char recorded_registers[384];

struct state {
    uint64_t general[13]; /* rax rdi rsi rdx rcx r8 r9 r10 rbp r12 r13 r14 r15 */
    uint64_t rsp, rflags;
    uint32_t mxcsr;
    uint16_t x87_control, unused;
    uint64_t xmm[32];
} __attribute__((packed));

/* Loads registers from `in`, calls, and stores rax, rdx, xmm0, xmm1, st0, st1, the callee-saved
 * registers and the stack pointer. */
uint64_t call_with(const uint64_t *in, uint64_t *out);
__asm__(".text\n"
        ".globl call_with\n"
        "call_with:\n"
        "  push %rbp; push %rbx; push %r12; push %r13; push %r14; push %r15; push %rsi\n"
        "  mov %rdi, %r11\n"
        "  mov 0(%r11), %rax; mov 8(%r11), %rdi; mov 16(%r11), %rsi; mov 24(%r11), %rdx\n"
        "  mov 32(%r11), %rcx; mov 40(%r11), %r8; mov 48(%r11), %r9; mov 56(%r11), %r10\n"
        "  mov 64(%r11), %rbp; mov 72(%r11), %r12; mov 80(%r11), %r13; mov 88(%r11), %r14\n"
        "  mov 96(%r11), %r15; mov 104(%r11), %rbx\n"
        "  .irp n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n"
        "  movups 112+16*\\n(%r11), %xmm\\n\n"
        "  .endr\n"
        "  mov %rsp, sp_at_call(%rip)\n"
        CALL(RECORD)
        "  pop %rsi\n"
        "  mov %rax, 0(%rsi); mov %rdx, 8(%rsi); movq %xmm0, 16(%rsi); movq %xmm1, 24(%rsi)\n"
        "  fistpll 32(%rsi); fistpll 40(%rsi)\n"
        "  mov %rbp, 48(%rsi); mov %rbx, 56(%rsi); mov %r12, 64(%rsi); mov %r13, 72(%rsi)\n"
        "  mov %r14, 80(%rsi); mov %r15, 88(%rsi)\n"
        "  pushfq; popq 96(%rsi)\n"
        "  pop %r15; pop %r14; pop %r13; pop %r12; pop %rbx; pop %rbp\n"
        "  ret\n"
        ".local sp_at_call\n"
        ".comm sp_at_call,8,8\n"
        ".globl address_of_sp\n"
        "address_of_sp: lea sp_at_call(%rip), %rax; ret\n");
uint64_t *address_of_sp(void);

static void once(void *argument)
{
    uint64_t in[46], out[13];
    for (uint64_t i = 0; i < 46; i++)
        in[i] = 0x0123456789abcdefULL * (i + 1) + (uint64_t)(long)argument;
    call_with(in, out);

    struct state seen;
    memcpy(&seen, recorded_registers, sizeof seen);
    for (int i = 0; i < 13; i++)
        CHECK(seen.general[i] == in[i]);
    CHECK(memcmp(seen.xmm, in + 14, sizeof seen.xmm) == 0);
    CHECK(seen.mxcsr == __builtin_ia32_stmxcsr());
    CHECK((seen.rflags & 0x400) == 0);
    CHECK(seen.rsp % 16 == *address_of_sp() % 16);

    CHECK(out[0] == 0x1111111111111111 && out[1] == 0x2222222222222222);
    CHECK(out[2] == 0x1111111111111111 && out[3] == 0x2222222222222222);
    CHECK(out[4] == 3 && out[5] == 1);
    CHECK(out[6] == in[8] && out[7] == in[13] && out[8] == in[9] && out[9] == in[10]);
    CHECK(out[10] == in[11] && out[11] == in[12]);
}

int main(int argc, char **argv)
{
    long rounds = atol(argv[argc - 1]);
    for (long i = 0; i < rounds; i++)
        if (i % 2)
            trap_call(once, (void *)i);
        else
            once((void *)i);
    puts("all as they were");
    return 0;
}
