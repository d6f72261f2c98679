# Entries that look before they leap: functions that are not ordinary, and new threads.

# ---- functions that are not ordinary ------------------------------------------------------------
# All argument registers are saved, Rust code decides, and the call goes on as if nothing had
# happened: through chase_enter, or straight into the real function with the stack as it was.
.macro restore_arguments
    movups (%rsp), %xmm0
    movups 16(%rsp), %xmm1
    movups 32(%rsp), %xmm2
    movups 48(%rsp), %xmm3
    movups 64(%rsp), %xmm4
    movups 80(%rsp), %xmm5
    movups 96(%rsp), %xmm6
    movups 112(%rsp), %xmm7
    addq $128, %rsp
    .cfi_adjust_cfa_offset -128
    popq %r11
    .cfi_adjust_cfa_offset -8
    popq %r10
    .cfi_adjust_cfa_offset -8
    popq %r9
    .cfi_adjust_cfa_offset -8
    popq %r8
    .cfi_adjust_cfa_offset -8
    popq %rdi
    .cfi_adjust_cfa_offset -8
    popq %rsi
    .cfi_adjust_cfa_offset -8
    popq %rcx
    .cfi_adjust_cfa_offset -8
    popq %rdx
    .cfi_adjust_cfa_offset -8
    popq %rax
    .cfi_adjust_cfa_offset -8
.endm

    .text
    .p2align 4
    .type chase_special, @function
chase_special:                          # r11 = number of the special stub
    .cfi_startproc
    pushq %rax
    .cfi_adjust_cfa_offset 8
    pushq %rdx
    .cfi_adjust_cfa_offset 8
    pushq %rcx
    .cfi_adjust_cfa_offset 8
    pushq %rsi
    .cfi_adjust_cfa_offset 8
    pushq %rdi
    .cfi_adjust_cfa_offset 8
    pushq %r8
    .cfi_adjust_cfa_offset 8
    pushq %r9
    .cfi_adjust_cfa_offset 8
    pushq %r10
    .cfi_adjust_cfa_offset 8
    pushq %r11
    .cfi_adjust_cfa_offset 8
    subq $128, %rsp
    .cfi_adjust_cfa_offset 128
    movups %xmm0, (%rsp)
    movups %xmm1, 16(%rsp)
    movups %xmm2, 32(%rsp)
    movups %xmm3, 48(%rsp)
    movups %xmm4, 64(%rsp)
    movups %xmm5, 80(%rsp)
    movups %xmm6, 96(%rsp)
    movups %xmm7, 112(%rsp)
    leaq 128(%rsp), %rdi                # the saved registers, as special::Arguments
    callq {special}
    testl %eax, %eax
    jz .Lspecial_enter
    .cfi_remember_state
    restore_arguments
    jmpq *%r11                          # r11 = the real function
.Lspecial_enter:
    .cfi_restore_state
    restore_arguments
    jmp chase_enter                     # r11 = slot
    .cfi_endproc
    .size chase_special, . - chase_special

# ---- new threads --------------------------------------------------------------------------------
# Runs in place of the start routine and jumps into it, so that no frame of ours stays on the stack.
    .p2align 4
    .hidden chase_thread_start
    .globl chase_thread_start
    .type chase_thread_start, @function
chase_thread_start:                     # rdi = thread::Start
    .cfi_startproc
    subq $8, %rsp
    .cfi_adjust_cfa_offset 8
    leaq 16(%rsp), %rsi                 # the end of the stack that the start routine uses
    callq {thread_begin}
    addq $8, %rsp
    .cfi_adjust_cfa_offset -8
    movq %rdx, %rdi                     # the application's argument
    jmpq *%rax                          # the application's start routine
    .cfi_endproc
    .size chase_thread_start, . - chase_thread_start
