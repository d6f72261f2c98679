# Reads of the clock other than the ordinary ones: to start samples, to measure their cost, and by system call.

    .text
# Fills in the frame rcx of a call that starts at the time rax, and restores registers. r11 = the real function.
.macro fill_frame exit
    movq {NODE}(%rcx), %rdx
    movq %rax, {START}(%rcx)
    movq %rax, {LAST_START}(%rdx)
    leaq \exit(%rip), %rax
    movq {EXIT}(%rcx), %r11             # the real function
    movq %rax, {EXIT}(%rcx)
    restore %rcx
    restore %rdx
    restore %rax
.endm

# ---- the start of a call that the slow half has entered -----------------------------------------
# Runs in place of the real function, with all of its arguments. Where few calls are timed, each stands for many, so
# its overhead must be the same for all. So the clock is read after all of the slow half is done (lfence), and the
# function is reached by a jump that the processor never predicts, whatever came before: a return to an address other
# than the one that its call pushed, made by a pair that leaves other returns predicted. That is why chase_probe can
# measure the overhead.
.macro start_path of exit
    .type chase_start_\of, @function
chase_start_\of:                        # (rsp) = in the frame's pad
    .cfi_startproc
    save %rax
    save %rdx
    save %rcx
    movq 24(%rsp), %rcx
    subq {distance}(%rip), %rcx
    subq ${PAD_CALL}, %rcx              # rcx = frame
    cmpq {clock_limit}(%rip), %rcx
    ja 2f
    lfence
    rdtsc
    shlq $32, %rdx
    orq %rdx, %rax
1:
    fill_frame \exit
    callq 3f
    int3
2:
    .cfi_adjust_cfa_offset 24
    callq chase_clock
    jmp 1b
3:
    .cfi_adjust_cfa_offset -16
    movq %r11, (%rsp)
    retq
    .cfi_endproc
    .size chase_start_\of, . - chase_start_\of
.endm

    start_path near chase_exit_near
    start_path far chase_exit_far
    start_path sample chase_exit_sample
    start_path kept chase_exit_kept     # arguments.S

# Returns in rax the duration that would be recorded now for a call of an empty function that is a sample; 0 where the
# clock is the kernel's. Its steps between both reads of the clock are those of a sample, with a frame on the stack: each
# one counts, since the processor is in the middle of the next ones when it reads the clock.
    .hidden chase_probe
    .globl chase_probe
    .type chase_probe, @function
    .p2align 6
chase_probe:
    .cfi_startproc
    subq ${FRAME} + 24, %rsp
    .cfi_adjust_cfa_offset {FRAME} + 24
    leaq .Lnothing(%rip), %rax
    movq %rax, {EXIT}(%rsp)
    leaq {FRAME} + 8 - {LAST_START}(%rsp), %rax
    movq %rax, {NODE}(%rsp)
    movq %rsp, %rcx
    callq 1f
    leaq (%rsp), %r11                   # as in a pad
    jmpq *{EXIT}(%r11)
.Lprobed:
    movq %rax, %r9                      # as in chase_exit_sample
    movq %rdx, %r10
    read_clock %r11 4f
    subq {START}(%r11), %rax
5:
    addq ${FRAME} + 24, %rsp
    .cfi_adjust_cfa_offset -{FRAME} - 24
    retq
4:
    .cfi_adjust_cfa_offset {FRAME} + 24
    xorl %eax, %eax
    jmp 5b
1:
    .cfi_adjust_cfa_offset 8
    save %rax
    save %rdx
    save %rcx
    lfence
    rdtsc
    shlq $32, %rdx
    orq %rdx, %rax
    fill_frame .Lprobed
    callq 3f
    int3
3:
    .cfi_adjust_cfa_offset 8
    movq %r11, (%rsp)
    retq
.Lnothing:
    .cfi_adjust_cfa_offset -8
    retq
    .cfi_endproc
    .size chase_probe, . - chase_probe

# ---- the kernel's clock -------------------------------------------------------------------------
# Returns CLOCK_MONOTONIC in ns in rax, by a system call of its own, or the time at which the clock was stopped.
# Preserves all other registers but rdx.
    .type chase_clock, @function
chase_clock:
    .cfi_startproc
    movq {frozen_ticks}(%rip), %rax
    testq %rax, %rax
    jz 1f
    retq
1:
    save %rcx
    save %rsi
    save %rdi
    save %r11
    movq {words_at}(%rip), %rcx
    movq %fs:{CONTEXT}(%rcx), %rax
    save %rax                           # the context, to which this call does not belong
    movq {base}(%rip), %rax
    addq ${OWN_CONTEXT}, %rax
    movq %rax, %fs:{CONTEXT}(%rcx)
    subq $16, %rsp
    .cfi_adjust_cfa_offset 16
    movl $228, %eax                     # clock_gettime
    movl $1, %edi                       # CLOCK_MONOTONIC
    movq %rsp, %rsi
    syscall
    imulq $1000000000, (%rsp), %rax
    addq 8(%rsp), %rax
    addq $16, %rsp
    .cfi_adjust_cfa_offset -16
    restore %rsi
    show_context far %rsi %rcx
    restore %r11
    restore %rdi
    restore %rsi
    restore %rcx
    retq
    .cfi_endproc
    .size chase_clock, . - chase_clock
