/* Functions that look whether every callee-saved register holds what kept.c put there, and count how
   often one does not. Many have names that the hook treats in a way of their own; they do nothing else. */
#include <features.h>

#if __GLIBC_PREREQ(2, 34)
#define CLONE __clone,
#else /* libpthread would call it. */
#define CLONE
#endif

        .macro  look
        movq    kept_expected@GOTPCREL(%rip), %r11
        xorl    %eax, %eax
        .set    place, 0
        .irp    register, rbx, rbp, r12, r13, r14, r15
        cmpq    %\register, place(%r11)
        setne   %al
        addq    %rax, 64(%r11)
        .set    place, place + 8
        .endr
        stmxcsr -8(%rsp)
        movl    -8(%rsp), %ecx
        cmpl    %ecx, 48(%r11)
        setne   %al
        addq    %rax, 64(%r11)
        fnstcw  -8(%rsp)
        movw    -8(%rsp), %cx
        cmpw    %cx, 52(%r11)
        setne   %al
        addq    %rax, 64(%r11)
        incq    72(%r11)
        .endm

        .macro  function name
        .globl  \name
        .type   \name, @function
\name:
        .cfi_startproc
        .endm
        .macro  finish name
        .cfi_endproc
        .size   \name, . - \name
        .endm

        .text
        /* One for each kind that special.rs knows, and that may come back. */
        .irp    name, kept_plain, kept_again, co_switch, jump_fcontext, thrd_exit, _longjmp, \
                      thrd_create, CLONE dlmopen, dlclose, dlvsym, _Fork, syscall, prctl
        function \name
        look
        xorl    %eax, %eax
        ret
        finish  \name
        .endr

        /* Calls another function, and looks when that has returned, too. */
        function kept_outer
        subq    $8, %rsp
        .cfi_adjust_cfa_offset 8
        look
        call    kept_plain@PLT
        look
        addq    $8, %rsp
        .cfi_adjust_cfa_offset -8
        ret
        finish  kept_outer

        /* Tail calls: what is called returns to this function's caller, or rather to what stands for it. */
        function kept_tail
        look
        jmp     kept_tail_again@PLT
        finish  kept_tail
        function kept_tail_again
        look
        jmp     kept_again@PLT
        finish  kept_tail_again

        /* Each of these is called once. */
        .set    number, 0
        .altmacro
        .macro  once n
        function kept_once_\n
        look
        ret
        finish  kept_once_\n
        .endm
        .rept   16
        once    %number
        .set    number, number + 1
        .endr

        .bss
        .globl  kept_expected
        .type   kept_expected, @object
        .size   kept_expected, 80
        .balign 16
kept_expected:
        .zero   80
        .section .note.GNU-stack, "", @progbits
