# The path of a call whose countdown is not above zero. A timed call goes on in call.S. A call that is not timed gets
# a frame all the same if its function calls others, so that they are recorded in its context:
# stub -> chase_counted -> the real function -> chase_framed_exit -> the application.
#
# As in call.S, without the clock and what is recorded with it.

    .text
.macro framed_path of
    .p2align 6
    .hidden chase_counted_\of
    .type chase_counted_\of, @function
chase_counted_\of:                      # r11 = slot, (rsp) = return address, flags = those of its countdown
    .cfi_startproc
    jns .Lcountdown_ended_\of
    stash_rax                           # the others one by one
    load_counts \of %rax                # rax = the thread's countdowns
    whole 13
    cmpw $0, {PLACE}(%rax,%r11,{COUNTDOWN}) # the bit for frames is the sign
    jns .Lenter_stashed_\of             # timed
    movq %rcx, -24(%rsp)
    load_thread \of %rcx                # rcx = thread
    {{disp32}} movq %rdx, -16(%rsp)
    {{disp32}} movq %rsi, -32(%rsp)
.Lframed_again_\of:
    load_context \of %rdx               # rdx = the caller's node
    imull ${HASH}, %r11d, %esi
    movl %edx, %eax
    shrl $3, %eax
    leal (%rax,%rax,8), %eax
    leal {FRAMED_HASH}(%rsi,%rax), %esi # rsi = hash of both, as tree::hash
    {{disp32}} movq {TOP}(%rcx), %rax   # rax = the frame to claim
    whole 11
    testl ${SEGMENT_MASK}, %eax
    jz .Lframed_next_\of
    whole 10
    cmpq %rsp, {SP}-{FRAME}(%rax)
    jbe .Lframed_outside_\of
.Lframed_enclosed_\of:
    shlq $32, %rdx
    orq %r11, %rdx
    orq ${FRAMED}, %rdx
.Lframed_probe_\of:
    andq {MASK}(%rcx), %rsi
    addq {TABLE}(%rcx), %rsi
    whole 9
    cmpq %rdx, (%rsi)
    jne .Lframed_collision_\of
    {{disp32}} movq 8(%rsi), %rsi       # rsi = node
    movl ${FRAME}, %edx
    xaddq %rdx, {TOP}(%rcx)
    whole 9
    cmpq %rdx, %rax
    jne .Lenter_moved_\of
    movq %rsi, {NODE}(%rax)
    movl $0, {WEIGHT}(%rax)             # it stands for no call: not timed
    movq (%rsp), %rdx
    movq %rdx, {RET}(%rax)
    leaq chase_framed_exit_\of(%rip), %rdx
    movq %rdx, {EXIT}(%rax)
    load_target %r11 %rcx
    movq %r11, {TARGET}(%rax)
    movq %rsp, {SP}(%rax)
    incq {CALLS}(%rsi)
    show_context \of %rsi %rcx
    movq %rax, %r11
    addq {distance}(%rip), %r11
    unstash
    leaq 8(%rsp), %rsp
    cfi_return_below
    jmpq *%r11

    .hidden chase_framed_exit_\of
    .globl chase_framed_exit_\of
chase_framed_exit_\of:                  # r11 = frame; rax rdx rcx r8 may hold results
    cfi_return_in_frame
    load_thread \of %r9                 # r9 = thread, perhaps another one than at entry
    leaq {FRAME}(%r11), %rdi
    whole 9
    cmpq %rdi, {TOP}(%r9)
    jne .Lframed_not_top_\of
.Lframed_on_top_\of:
    movq $0, {SP}(%r11)
    pushq {RET}(%r11)
    cfi_return_on_stack
    {{disp32}} movq {NODE}-{FRAME}(%r11), %rsi # rsi = the caller's node
    subq ${FRAME}, {TOP}(%r9)
    whole 9
    cmpq %r11, {TOP}(%r9)
    jne .Lframed_leave_moved_\of
    show_context \of %rsi %r9
    whole 1
    retq

# ---- out of line --------------------------------------------------------------------------------
.Lframed_not_top_\of:
    cfi_return_in_frame
    movq %rax, %r10
    leave_next_segment %r9 1f
    movq %r10, %rax
    jmp .Lframed_on_top_\of
1:
    movq %r10, %rax
    pushq {RET}(%r11)
    cfi_return_on_stack
    movq %rax, %r9
    movq %rdx, %r10
    push_results
    movq %r11, %rdi
    call_rust {leave_framed}
    pop_results
    retq

.Lframed_leave_moved_\of:
    movq %rax, %r9
    movq %rdx, %r10
    jmp .Lleave_moved_\of

.Lframed_outside_\of:
    jb .Lframed_slow_\of
    jump_if_named (%rsp) %rax 1f
    jmp .Lframed_slow_\of
1:
    load_context \of %rdx
    jmp .Lframed_enclosed_\of

.Lframed_next_\of:
    enter_next_segment .Lframed_slow_\of
    jmp .Lframed_again_\of

.Lframed_collision_\of:
    cmpq $0, (%rsi)
    je .Lframed_slow_\of
    subq {TABLE}(%rcx), %rsi
    addq $16, %rsi
    jmp .Lframed_probe_\of

.Lframed_slow_\of:
    jmp .Lenter_slow_\of
    .cfi_endproc
    .size chase_counted_\of, . - chase_counted_\of
.endm

    framed_path near
    framed_path far
