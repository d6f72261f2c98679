# The path of a call that is not timed and yet gets a frame, since it calls other functions, which are
# in its context: stub -> chase_framed -> the real function -> chase_framed_exit -> the application.
#
# All of it is as in call.S, less the clock and what is recorded with it.

    .p2align 6
    .hidden chase_framed
    .type chase_framed, @function
chase_framed:                           # r11 = slot, (rsp) = return address
    .cfi_startproc
    save %rax
    save %rdx
    save %rcx
    save %rsi
    movq chase_thread@gottpoff(%rip), %rax
    movq %fs:{THREAD}(%rax), %rcx               # rcx = thread
    movq %fs:(%rax), %rdx       # rdx = its countdowns
    movq {TOP}(%rcx), %rax              # rax = the frame to claim
    testl ${SEGMENT_MASK}, %eax
    jz .Lframed_slow
    cmpw $0, {PLACE}(%rdx,%r11,{COUNTDOWN}) # the bit for frames is the sign
    jns .Lframed_leaf
    leaq 32(%rsp), %rdx
    cmpq %rdx, {SP}-{FRAME}(%rax)
    jbe .Lframed_outside
.Lframed_enclosed:
    movq {NODE}-{FRAME}(%rax), %rdx
    movl {SCOPE}(%rdx), %edx
    shlq $32, %rdx
    orq %r11, %rdx
    orq ${FRAMED}, %rdx
    movabsq ${HASH}, %rsi
    imulq %rdx, %rsi
    shrq $32, %rsi
.Lframed_probe:
    andq {MASK}(%rcx), %rsi
    addq {TABLE}(%rcx), %rsi
    cmpq %rdx, (%rsi)
    jne .Lframed_collision
    movq 8(%rsi), %rsi                  # rsi = node
    movl ${FRAME}, %edx
    xaddq %rdx, {TOP}(%rcx)
    cmpq %rdx, %rax
    jne .Lenter_moved
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
    movq chase_thread@gottpoff(%rip), %rcx
    movq %rsi, %fs:{CONTEXT}(%rcx)
    restore %rsi
    restore %rcx
    restore %rdx
    restore %rax
    leaq 8(%rsp), %rsp
    cfi_return_in_frame
    callq *%r11

    .hidden chase_framed_exit
    .globl chase_framed_exit
chase_framed_exit:                      # rbx = frame; rax rdx rcx r8 may hold results
    movq chase_thread@gottpoff(%rip), %r9
    movq %fs:{THREAD}(%r9), %r10                # r10 = thread, perhaps another one than at entry
    leaq {FRAME}(%rbx), %rdi
    cmpq %rdi, {TOP}(%r10)
    jne .Lframed_leave_slow
    movq $0, {SP}(%rbx)
    pushq {RET}(%rbx)
    cfi_return_on_stack
    movq {RBX}(%rbx), %rdi
    .cfi_register rbx, rdi
    movq {NODE}-{FRAME}(%rbx), %rsi     # rsi = the caller's node
    subq ${FRAME}, {TOP}(%r10)
    cmpq %rbx, {TOP}(%r10)
    jne .Lframed_leave_moved
    movq %rsi, %fs:{CONTEXT}(%r9)
    movq %rdi, %rbx
    .cfi_restore rbx
    retq

# ---- out of line --------------------------------------------------------------------------------
.Lframed_leave_slow:
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

.Lframed_leave_moved:
    .cfi_register rbx, rdi
    movq %rax, %r9
    movq %rdx, %r11
    jmp .Lleave_moved

.Lframed_leaf:                          # on this thread its calls get no frames
    .cfi_def_cfa rsp, 40
    .cfi_restore rbx
    leaq {routes}(%rip), %rcx
    shlq $4, %r11
    movq (%rcx,%r11), %r11
    restore %rsi
    restore %rcx
    restore %rdx
    restore %rax
    jmpq *%r11

.Lframed_outside:
    .cfi_def_cfa rsp, 40
    jb .Lframed_slow
    leaq chase_exit(%rip), %rdx
    cmpq %rdx, 32(%rsp)
    je .Lframed_enclosed
    leaq chase_framed_exit(%rip), %rdx
    cmpq %rdx, 32(%rsp)
    je .Lframed_enclosed
    jmp .Lframed_slow

.Lframed_collision:
    cmpq $0, (%rsi)
    je .Lframed_slow
    subq {TABLE}(%rcx), %rsi
    addq $16, %rsi
    jmp .Lframed_probe

.Lframed_slow:
    movl ${FRAMED_CALL}, %esi
    jmp .Lenter_slow_moved
    .cfi_endproc
    .size chase_framed, . - chase_framed
