# The rest of a system call that has done only a part of what it was asked to, since the thread was stopped in it when
# chase came or left: the launcher lets the thread go on here instead of behind the system call. Its result is then that of
# both parts together.
#
# Given: all registers as they were for the system call, with its number in %rax; where the thread goes on in %rcx, and how
# much is done in %r11, both of which a system call may change. All others are kept, with the flags, and the red zone. If the
# thread is stopped here, it goes on here once more.

    .macro REST_BEGINS name
    .p2align 4
    .hidden \name
    .globl \name
    .type \name, @function
\name:
    .cfi_startproc
    .cfi_signal_frame
    .cfi_def_cfa %rsp, 8                # no call has pushed anything: it is beyond the stack pointer to tell frames apart,
    .cfi_escape 0x14, 7, 1              # which is that of the caller: DW_CFA_val_offset %rsp, -8
    .cfi_register %rip, %rcx
    leaq -128(%rsp), %rsp               # the red zone
    .cfi_adjust_cfa_offset 128
    pushfq
    .cfi_adjust_cfa_offset 8
    pushq %rcx
    .cfi_adjust_cfa_offset 8
    .cfi_rel_offset %rip, 0
    .endm

    .macro REST_ENDS name
    popq %rcx
    .cfi_adjust_cfa_offset -8
    .cfi_register %rip, %rcx
    popfq
    .cfi_adjust_cfa_offset -8
    leaq 128(%rsp), %rsp
    .cfi_adjust_cfa_offset -128
    jmpq *%rcx
    .cfi_endproc
    .size \name, . - \name
    .endm

    .macro KEEP register
    pushq \register
    .cfi_adjust_cfa_offset 8
    .endm

    .macro GIVE_BACK register
    popq \register
    .cfi_adjust_cfa_offset -8
    .endm

    # Adds the result of the system call, unless that is an error, to the sum on top of the stack, which becomes the result.
    .macro SUM_UP
    testq %rax, %rax
    js 9f
    addq %rax, (%rsp)
9:  GIVE_BACK %rax
    .endm

    .text
# Of a buffer in %rsi, %rdx bytes long.
REST_BEGINS chase_rest_of_buffer
    KEEP %rsi
    KEEP %rdx
    KEEP %r11
    addq %r11, %rsi
    subq %r11, %rdx
    syscall
    SUM_UP
    GIVE_BACK %rdx
    GIVE_BACK %rsi
REST_ENDS chase_rest_of_buffer

# Of %r10 bytes of a file, from where the kernel is there.
REST_BEGINS chase_rest_of_file
    KEEP %r10
    KEEP %r11
    subq %r11, %r10
    syscall
    SUM_UP
    GIVE_BACK %r10
REST_ENDS chase_rest_of_file

# Of %rdx buffers, in an array of addresses and lengths at %rsi: written one after the other.
REST_BEGINS chase_rest_of_buffers
    KEEP %rsi
    KEEP %rdx
    KEEP %r8
    KEEP %r9
    KEEP %r10
    KEEP %r11
    movq %rsi, %r8                      # the buffer
    movq %rdx, %r9                      # how many are left
    movq %r11, %r10                     # what is done of these
1:  testq %r9, %r9
    jz 4f
    movq 8(%r8), %rdx
    subq %r10, %rdx
    ja 2f
    movq %rdx, %r10                     # none of this one is left
    negq %r10
    jmp 3f
2:  movq (%r8), %rsi
    addq %r10, %rsi
    movl $1, %eax                       # write
    syscall
    testq %rax, %rax
    js 4f
    addq %rax, (%rsp)
    cmpq %rdx, %rax
    jne 4f                              # a signal, or no reader
    xorl %r10d, %r10d
3:  addq $16, %r8
    decq %r9
    jmp 1b
4:  GIVE_BACK %rax
    GIVE_BACK %r10
    GIVE_BACK %r9
    GIVE_BACK %r8
    GIVE_BACK %rdx
    GIVE_BACK %rsi
REST_ENDS chase_rest_of_buffers

    .hidden chase_rest_end
    .globl chase_rest_end
chase_rest_end:
