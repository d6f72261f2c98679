/* record_registers: writes every register it was called with to recorded_registers, and returns
   with a known value in every register that can hold a result. See registers.c. RECORD: another name. */
#ifndef RECORD
#define RECORD record_registers
#endif
        .text
        .globl  RECORD
        .type   RECORD, @function
RECORD:
        endbr64
        pushq   %rbx
        movq    recorded_registers@GOTPCREL(%rip), %rbx
        movq    %rax, 0(%rbx)
        movq    %rdi, 8(%rbx)
        movq    %rsi, 16(%rbx)
        movq    %rdx, 24(%rbx)
        movq    %rcx, 32(%rbx)
        movq    %r8, 40(%rbx)
        movq    %r9, 48(%rbx)
        movq    %r10, 56(%rbx)
        movq    %rbp, 64(%rbx)
        movq    %r12, 72(%rbx)
        movq    %r13, 80(%rbx)
        movq    %r14, 88(%rbx)
        movq    %r15, 96(%rbx)
        leaq    16(%rsp), %rax
        movq    %rax, 104(%rbx)
        pushfq
        popq    112(%rbx)
        stmxcsr 120(%rbx)
        fnstcw  124(%rbx)
        .irp    n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
        movups  %xmm\n, 128+16*\n(%rbx)
        .endr
        popq    %rbx
        movabsq $0x1111111111111111, %rax
        movabsq $0x2222222222222222, %rdx
        movq    %rax, %xmm0
        movq    %rdx, %xmm1
        fld1
        fldpi
        ret
        .size   RECORD, .-RECORD

        .bss
        .globl  recorded_registers
        .type   recorded_registers, @object
        .size   recorded_registers, 384
        .balign 16
recorded_registers:
        .zero   384
        .section .note.GNU-stack, "", @progbits
