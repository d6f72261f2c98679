# The entry of a timed call of a function whose argument is recorded. The table has a row of arguments in place of the
# node, under a key with one more bit, so the look-up ends here by a collision: no other call takes longer.

    .text
.macro argument_path of
    .p2align 5
    .type chase_argument_\of, @function
chase_argument_\of:                     # rsi = entry, rax = frame, rcx = thread, r11 = slot, the others as stashed
    .cfi_startproc
    movq %rdi, -40(%rsp)
    movq 8(%rsi), %rdi                  # rdi = row
    cmpl $0, {ROW_UNTIL}(%rdi)          # a short one, or a call that is kept with its duration
    je .Largument_slow_\of
    movl ${FRAME}, %edx
    xaddq %rdx, {TOP}(%rcx)             # claimed, as in call.S
    cmpq %rdx, %rax
    jne .Largument_moved_\of
    movq %r8, -48(%rsp)
    movq %r9, -56(%rsp)
    leaq {arguments}(%rip), %r9
    movsbq (%r9,%r11,4), %rdx
    movq (%rsp,%rdx), %r8               # r8 = value
    movsbq 1(%r9,%r11,4), %rdx
    testl %edx, %edx
    jnz .Lproduct_\of
.Lmultiplied_\of:
    testb $3, 2(%r9,%r11,4)
    jnz .Lint_or_text_\of
.Lwidened_\of:
    incq {ROW_CALLS}(%rdi)
    incq {ROW_WEIGHT}(%rdi)
    decl {ROW_UNTIL}(%rdi)
    testq %r8, %r8
    js .Lnegative_\of
    leaq 1(%r8,%r8), %rdx
    movl ${LAST_ARGUMENT}, %r9d
    bsrq %rdx, %rdx                     # layout::argument_bucket
    cmpl %r9d, %edx
    cmoval %r9d, %edx
    incq {ROW_BUCKETS}(%rdi,%rdx,8)
    addq %r8, {ROW_SUM}(%rdi)
    cmpq {ROW_MAX}(%rdi), %r8
    ja .Llargest_\of
.Lnoted_\of:
    movl {ROW_NODE}(%rdi), %esi
    shlq $7, %rsi
    addq {base}(%rip), %rsi             # rsi = node
    movq -40(%rsp), %rdi
    movq -48(%rsp), %r8
    movq -56(%rsp), %r9
    jmp .Lclaimed_\of

.Lproduct_\of:
    imulq (%rsp,%rdx), %r8
    jno .Lmultiplied_\of
    movq $-1, %r8
    jmp .Lwidened_\of
.Lint_or_text_\of:
    testb $2, 2(%r9,%r11,4)
    jnz .Ltext_\of
    movslq %r8d, %r8                    # the upper half of the register is anything
    jmp .Lwidened_\of
.Ltext_\of:                             # read after the call, if that takes long
    movq %r8, {BEGAN}(%rax)
    jmp .Lnoted_\of
.Lnegative_\of:
    incq {ROW_NEGATIVE}(%rdi)
    jmp .Lnoted_\of
.Llargest_\of:
    movq %r8, {ROW_MAX}(%rdi)
    jmp .Lnoted_\of

.Largument_slow_\of:
    movq -40(%rsp), %rdi
    jmp .Lenter_slow_\of
.Largument_moved_\of:
    movq -40(%rsp), %rdi
    jmp .Lenter_moved_\of
    .cfi_endproc
    .size chase_argument_\of, . - chase_argument_\of
.endm

    argument_path near
    argument_path far
