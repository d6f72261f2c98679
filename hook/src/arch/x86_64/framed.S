# The path of a call that is not timed and yet gets a frame, since it calls other functions, which are
# in its context: stub -> chase_framed -> the real function -> chase_framed_exit -> the application.
#
# All of it is as in call.S, less the clock and what is recorded with it.

    .text
.macro framed_path of
    .p2align 6
    .hidden chase_framed_\of
    .type chase_framed_\of, @function
chase_framed_\of:                       # r11 = slot, (rsp) = return address
    .cfi_startproc
    save %rax
    load_counts \of %rax                # rax = the thread's countdowns
    cmpw $0, {PLACE}(%rax,%r11,{COUNTDOWN}) # the bit for frames is the sign
    jns .Lframed_leaf_\of
    save %rdx
    save %rcx
    save %rsi
    load_thread \of %rcx                # rcx = thread
    movq {TOP}(%rcx), %rax              # rax = the frame to claim
    testl ${SEGMENT_MASK}, %eax
    jz .Lframed_slow_\of
    leaq 32(%rsp), %rdx
    cmpq %rdx, {SP}-{FRAME}(%rax)
    jbe .Lframed_outside_\of
.Lframed_enclosed_\of:
    movq {NODE}-{FRAME}(%rax), %rdx
    movl {SCOPE}(%rdx), %edx
    shlq $32, %rdx
    orq %r11, %rdx
    orq ${FRAMED}, %rdx
    movabsq ${HASH}, %rsi
    imulq %rdx, %rsi
    shrq $32, %rsi
.Lframed_probe_\of:
    andq {MASK}(%rcx), %rsi
    addq {TABLE}(%rcx), %rsi
    cmpq %rdx, (%rsi)
    jne .Lframed_collision_\of
    movq 8(%rsi), %rsi                  # rsi = node
    movl ${FRAME}, %edx
    xaddq %rdx, {TOP}(%rcx)
    cmpq %rdx, %rax
    jne .Lenter_moved_\of
    movq %rsi, {NODE}(%rax)
    movl $0, {WEIGHT}(%rax)             # it stands for no call: not timed
    leaq 32(%rsp), %rdx
    movq %rdx, {SP}(%rax)
    movq %rbx, {RBX}(%rax)
    movq 32(%rsp), %rdx
    movq %rdx, {RET}(%rax)
    movq %rax, %rbx                     # rbx = frame
    cfi_rbx_in_frame
    leaq {routes}(%rip), %rcx
    shlq $4, %r11
    movq (%rcx,%r11), %r11
    incq {CALLS}(%rsi)
    show_context \of %rsi %rcx
    restore %rsi
    restore %rcx
    restore %rdx
    restore %rax
    leaq 8(%rsp), %rsp
    cfi_return_in_frame
    callq *%r11

    .hidden chase_framed_exit_\of
    .globl chase_framed_exit_\of
chase_framed_exit_\of:                  # rbx = frame; rax rdx rcx r8 may hold results
    load_thread \of %r10                # r10 = thread, perhaps another one than at entry
    leaq {FRAME}(%rbx), %rdi
    cmpq %rdi, {TOP}(%r10)
    jne .Lframed_leave_slow_\of
    movq $0, {SP}(%rbx)
    pushq {RET}(%rbx)
    cfi_return_on_stack
    movq {RBX}(%rbx), %rdi
    .cfi_register rbx, rdi
    movq {NODE}-{FRAME}(%rbx), %rsi     # rsi = the caller's node
    subq ${FRAME}, {TOP}(%r10)
    cmpq %rbx, {TOP}(%r10)
    jne .Lframed_leave_moved_\of
    show_context \of %rsi %r9
    movq %rdi, %rbx
    .cfi_restore rbx
    retq

# ---- out of line --------------------------------------------------------------------------------
.Lframed_leave_slow_\of:
    cfi_return_in_frame
    cfi_rbx_in_frame
    pushq {RET}(%rbx)
    cfi_return_on_stack
    pushq {RBX}(%rbx)
    .cfi_def_cfa_offset 16
    .cfi_offset rbx, -16
    movq %rax, %r9
    movq %rdx, %r11
    push_results
    movq %rbx, %rdi
    callq {leave_framed}
    pop_results
    restore %rbx
    .cfi_restore rbx
    retq

.Lframed_leave_moved_\of:
    .cfi_register rbx, rdi
    movq %rax, %r9
    movq %rdx, %r11
    jmp .Lleave_moved_\of

.Lframed_leaf_\of:                      # on this thread its calls get no frames
    .cfi_def_cfa rsp, 16
    .cfi_restore rbx
    leaq {routes}(%rip), %rax
    shlq $4, %r11
    movq (%rax,%r11), %r11
    restore %rax
    jmpq *%r11

.Lframed_outside_\of:
    .cfi_def_cfa rsp, 40
    jb .Lframed_slow_\of
    jump_if_exit 32(%rsp) .Lframed_enclosed_\of
    jmp .Lframed_slow_\of

.Lframed_collision_\of:
    cmpq $0, (%rsi)
    je .Lframed_slow_\of
    subq {TABLE}(%rcx), %rsi
    addq $16, %rsi
    jmp .Lframed_probe_\of

.Lframed_slow_\of:
    movl ${FRAMED_CALL}, %esi
    jmp .Lenter_slow_moved_\of
    .cfi_endproc
    .size chase_framed_\of, . - chase_framed_\of
.endm

    framed_path near
    framed_path far
