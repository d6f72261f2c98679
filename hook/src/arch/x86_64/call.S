# The path of one call: stub -> chase_enter -> the real function -> chase_exit -> the application.
# (A call that is only counted goes from the stub straight into the real function: stubs.S.)
#
# chase_enter changes no register that the callee may read (rdi rsi rdx rcx r8 r9, al, r10, all
# vector registers, the stack) and none that it must preserve but rbx, which it saves in the frame.
# chase_exit preserves every register that may hold a result (rax rdx rcx r8, xmm0 xmm1, st0 st1).
#
# In the callee the return address is chase_exit, and the frame's address is in rbx, which the
# callee preserves; so the caller's registers are found by plain unwinding:
#     rsp as it is, return address at [rbx], rbx at [rbx + 8].
# The CFA only serves to tell frames apart. With CFA = rsp this frame and the callee's would be one,
# and after a tail call there are two of ours at one rsp. So it is rsp + 15 less the frame's number
# modulo 8: it lies between the callee's (rsp) and the caller's (rsp + 16 or more), and grows
# outwards, which debuggers insist on.
#
# There is no personality routine: a frame that an exception or a cancellation passes is dropped,
# like one that longjmp passes, when the thread's next call proves it dead. (LLVM's libunwind takes
# a frame for the handler's if it has the same rsp, as ours and the caller's do, and would end the
# process when a personality did not act as the handler.)

    .section .tdata, "awT", @progbits
    .balign -({WORDS})                  # so it is at that place if the executable has little of its own
    .hidden chase_thread
    .type chase_thread, @object
    .size chase_thread, 24
chase_thread:
    .quad {no_counts}                   # its countdowns; at first those by which all calls are timed
    .quad {no_thread}                   # this thread's Thread; at first the one that has no frames
    .quad 0                             # the node of the innermost call, for who looks from outside

    .text

# ---- CFI ----------------------------------------------------------------------------------------
# rbx = *(rbx + 8): the caller's rbx is in the frame (DW_CFA_expression, DW_OP_breg3).
.macro cfi_rbx_in_frame
    .cfi_escape 0x10, 0x03, 0x02, 0x73, {RBX}
.endm
# The return address has moved from the stack to the frame, see above.
.macro cfi_return_in_frame
    # CFA = rsp + 15 - ((rbx >> 6) & 7) (DW_CFA_def_cfa_expression)
    .cfi_escape 0x0f, 0x09, 0x77, 0x0f, 0x73, 0x00, 0x36, 0x25, 0x37, 0x1a, 0x1c
    .cfi_escape 0x10, 0x10, 0x02, 0x73, {RET}       # return address = *(rbx + 0)
    .cfi_escape 0x16, 0x07, 0x02, 0x77, 0x00        # rsp = rsp (DW_CFA_val_expression)
.endm
# The return address is on the stack again, at the top. (Not `.cfi_restore rip`: libgcc takes that
# for "unchanged", and finds the same frame again.)
.macro cfi_return_on_stack
    .cfi_def_cfa rsp, 8
    .cfi_offset rip, -8
    .cfi_restore rsp
.endm

# rax = now, rdx is lost. A clock that is not the time stamp counter is read out of line.
.macro read_clock slow
    cmpl $0, {clock_kind}(%rip)
    jne \slow
    rdtsc
    shlq $32, %rdx
    orq %rdx, %rax
.endm

    .p2align 6
    .hidden chase_distant
    .type chase_distant, @function
chase_distant:                          # r11 = slot; the thread's words are not where stubs expect them
    .cfi_startproc
    save %rax
    movq chase_thread@gottpoff(%rip), %rax
    movq %fs:(%rax), %rax
    decw (%rax,%r11,{COUNTDOWN})
    jle 1f
    leaq {routes}(%rip), %rax
    shlq $4, %r11
    movq 8(%rax,%r11), %r11
    .cfi_remember_state
    restore %rax
    jmpq *%r11
1:
    .cfi_restore_state
    restore %rax                        # the flags stay
    jmp chase_counted
    .cfi_endproc
    .size chase_distant, . - chase_distant

    .p2align 6
    .hidden chase_counted
    .type chase_counted, @function
    .hidden chase_enter
    .type chase_enter, @function
chase_counted:                          # r11 = slot, flags = those of its countdown
    .cfi_startproc
    jns .Ldue                           # below zero, every call is timed
chase_enter:                            # r11 = slot, (rsp) = return address
    save %rax                          # al: number of vector arguments of a variadic call
    save %rdx
    save %rcx
    save %rsi

    movq chase_thread@gottpoff(%rip), %rax
    movq %fs:{THREAD}(%rax), %rcx               # rcx = thread
    movq {TOP}(%rcx), %rax              # rax = the frame to claim
    testl ${SEGMENT_MASK}, %eax         # end of the segment, or no thread
    jz .Lenter_slow
    leaq 32(%rsp), %rdx
    cmpq %rdx, {SP}-{FRAME}(%rax)       # the top frame must enclose this call
    jbe .Lenter_outside
.Lenclosed:
    movq {NODE}-{FRAME}(%rax), %rdx     # the caller's node
    movl {SCOPE}(%rdx), %edx
    shlq $32, %rdx
    orq %r11, %rdx                      # rdx = (scope, slot), the key
    movabsq ${HASH}, %rsi
    imulq %rdx, %rsi
    shrq $32, %rsi                      # the upper half of the product is the better mixed one
.Lprobe:
    andq {MASK}(%rcx), %rsi
    addq {TABLE}(%rcx), %rsi
    cmpq %rdx, (%rsi)
    jne .Lcollision
.Lfound:
    movq 8(%rsi), %rsi                  # rsi = node
    movl ${FRAME}, %edx
    xaddq %rdx, {TOP}(%rcx)             # claimed: one instruction, so no signal handler gets it too
    cmpq %rdx, %rax
    jne .Lenter_moved
    movq %rsi, {NODE}(%rax)
    leaq 32(%rsp), %rdx
    movq %rdx, {SP}(%rax)               # from here on the frame encloses calls of signal handlers
    movq %rbx, {RBX}(%rax)
    movq 32(%rsp), %rdx
    movq %rdx, {RET}(%rax)
    movq %rax, %rbx                     # rbx = frame
    cfi_rbx_in_frame
    leaq {routes}(%rip), %rcx
    shlq $4, %r11
    movq (%rcx,%r11), %r11              # r11 = the real function
    incq {CALLS}(%rsi)
.Llaunch:
    movq chase_thread@gottpoff(%rip), %rcx
    movq %rsi, %fs:{CONTEXT}(%rcx)
    read_clock .Lenter_clock
.Lstarted:
    movq %rax, {START}(%rbx)
    movq %rax, {LAST_START}(%rsi)
    restore %rsi
    restore %rcx
    restore %rdx
    restore %rax
    leaq 8(%rsp), %rsp                  # the return address is in the frame
    cfi_return_in_frame
.Lcall:
    callq *%r11

    .hidden chase_exit
    .globl chase_exit
chase_exit:                             # rbx = frame
    movq %rax, %r9                      # results are in rax and rdx by the ABI; rcx and r8 hold
    movq %rdx, %r11                     # more by other conventions, like Swift's
    movq %rcx, {SAVED_RCX}(%rbx)
    read_clock .Lexit_clock
.Lended:
    movq chase_thread@gottpoff(%rip), %r10
    movq %fs:{THREAD}(%r10), %r10               # r10 = thread, perhaps another one than at entry
    leaq {FRAME}(%rbx), %rdx
    cmpq %rdx, {TOP}(%r10)
    jne .Lleave_slow                    # not the top frame of this thread
    movq {NODE}(%rbx), %rsi             # rsi = node
    movq %rax, %rdi
    subq {START}(%rbx), %rdi            # rdi = ticks
    movq %rdi, %rdx
    orq ${LINEAR_LIMIT}, %rdx
    bsrq %rdx, %rcx
    cmpl ${MAX_EXPONENT}, %ecx
    ja .Lleave_slow
    subl ${SUB_BITS}, %ecx
    movq %rdi, %rdx
    shrq %cl, %rdx
    leal -16(%rdx,%rcx,8), %edx         # edx = bucket, as histogram::bucket_of
    movl %edx, %ecx
    shrl $4, %ecx
    movl {PAGES}(%rsi,%rcx,4), %ecx
    testl %ecx, %ecx
    jz .Lleave_slow                     # the first call in this page of the histogram
    andl $15, %edx
    shlq $7, %rcx
    addq {base}(%rip), %rcx
    movq $0, {SP}(%rbx)                 # ended: a cancellation from here on finds no open call
    incq (%rcx,%rdx,8)
    addq %rdi, {TOTAL}(%rsi)
    cmpq {MAX}(%rsi), %rdi
    ja .Lmaximum
.Lrecorded:
    pushq {RET}(%rbx)
    cfi_return_on_stack
    movq {RBX}(%rbx), %rdi              # rdi = the caller's rbx
    .cfi_register rbx, rdi
    movq {SAVED_RCX}(%rbx), %rcx
    movq {NODE}-{FRAME}(%rbx), %rsi     # rsi = the caller's node
    subq ${FRAME}, {TOP}(%r10)          # released: one instruction, for signal handlers
    cmpq %rbx, {TOP}(%r10)              # ... unless one has switched stacks in between
    jne .Lleave_moved
    movq chase_thread@gottpoff(%rip), %r10
    movq %rsi, %fs:{CONTEXT}(%r10)
    movq %rdi, %rbx
    .cfi_restore rbx
    movq %r9, %rax
    movq %r11, %rdx
    retq

# ---- out of line --------------------------------------------------------------------------------
.macro push_results                     # all that may hold one
    save %r9
    save %r11
    save %rcx
    save %r8
    subq $32, %rsp
    .cfi_adjust_cfa_offset 32
    movups %xmm0, (%rsp)                # Rust code touches no more of a vector than its lower half
    movups %xmm1, 16(%rsp)
.endm
.macro pop_results
    movups (%rsp), %xmm0
    movups 16(%rsp), %xmm1
    addq $32, %rsp
    .cfi_adjust_cfa_offset -32
    restore %r8
    restore %rcx
    restore %rdx
    restore %rax
.endm

.Lmaximum:
    cfi_return_in_frame
    cfi_rbx_in_frame
    movq %rdi, {MAX}(%rsi)
    jmp .Lrecorded

.Lleave_slow:                           # rax = now
    movq {SAVED_RCX}(%rbx), %rcx
    pushq {RET}(%rbx)
    cfi_return_on_stack
    pushq {RBX}(%rbx)
    .cfi_def_cfa_offset 16
    .cfi_offset rbx, -16
    push_results
    movq %rbx, %rdi
    movq %rax, %rsi
    callq {leave_slow}
    pop_results
    restore %rbx
    .cfi_restore rbx
    retq

.Lleave_moved:                          # recorded, but not on top any more
    .cfi_register rbx, rdi
    pushq %rdi
    .cfi_def_cfa_offset 16
    .cfi_offset rbx, -16
    push_results
    movq %rbx, %rdi
    callq {leave_moved}
    pop_results
    restore %rbx
    .cfi_restore rbx
    retq

.Lenter_outside:                        # a tail call takes over its caller's place on the stack
    .cfi_def_cfa rsp, 40
    jb .Lenter_slow
    leaq chase_exit(%rip), %rdx
    cmpq %rdx, 32(%rsp)
    je .Lenclosed
    leaq chase_framed_exit(%rip), %rdx
    cmpq %rdx, 32(%rsp)
    je .Lenclosed
    jmp .Lenter_slow

.Lcollision:                            # linear probing; an empty entry ends it
    cmpq $0, (%rsi)
    je .Lenter_slow
    subq {TABLE}(%rcx), %rsi
    addq $16, %rsi
    jmp .Lprobe

.Ldue:                                  # flags still tell where the countdown is
    .cfi_def_cfa rsp, 8
    save %rax
    save %rdx
    save %rcx
    save %rsi
    movl ${SAMPLE}, %esi                # zero: this call stands for others
    jz .Lenter_slow_moved
    movl ${LOOK}, %esi                  # it wrapped round: time to look at how the slot is used
    jmp .Lenter_slow_moved

.Lenter_moved:                          # somebody claimed between our look and our claim
    movq %rdx, %rsi
    jmp .Lenter_slow_moved
.Lenter_slow:
    xorl %esi, %esi                     # rsi = 0, why, or a frame that was claimed in vain
.Lenter_slow_moved:
    save %rdi
    save %r8
    save %r9
    save %r10
    save %r11
    push_vectors
    movl %r11d, %edi
    movq %rsi, %rcx
    leaq 200(%rsp), %rsi                # where the return address is
    movq %rbx, %rdx
    cmpl ${SAMPLE}, %ecx
    jne 1f
    callq {enter_sample}
    jmp 2f
1:
    callq {enter_slow}
2:
    pop_vectors
    restore %r11
    restore %r10
    restore %r9
    restore %r8
    restore %rdi
    leaq {routes}(%rip), %rcx
    shlq $4, %r11
    movq (%rcx,%r11), %r11
    testq %rax, %rax
    jz .Lbypass
    movq %rax, %rbx
    cfi_rbx_in_frame
    movq {NODE}(%rbx), %rsi
    movq chase_thread@gottpoff(%rip), %rcx
    movq %rsi, %fs:{CONTEXT}(%rcx)
    movq %r11, {SAVED_RCX}(%rbx)        # free until the exit
    leaq chase_start(%rip), %r11
    restore %rsi
    restore %rcx
    restore %rdx
    restore %rax
    leaq 8(%rsp), %rsp
    cfi_return_in_frame
    jmp .Lcall

.Lbypass:                               # no frame to be had: the call runs untimed
    .cfi_restore rbx
    restore %rsi
    restore %rcx
    restore %rdx
    restore %rax
    jmpq *%r11

.Lenter_clock:
    .cfi_def_cfa rsp, 40
    cfi_rbx_in_frame
    callq chase_clock
    jmp .Lstarted

.Lexit_clock:
    cfi_return_in_frame
    cfi_rbx_in_frame
    callq chase_clock
    jmp .Lended
    .cfi_endproc
    .size chase_enter, . - chase_enter
    .size chase_counted, . - chase_counted

# ---- the start of a call that the slow half has begun -------------------------------------------
# In place of the real function, with all of its arguments. Where few calls are timed, each stands for
# many, so what it costs is to be the same for all: the clock is read when all of the slow half is
# done, and the jump is one that the processor never foresees, whatever came before: a return to
# somewhere else than where the call came from, by a pair that leaves other returns foreseen. So
# chase_probe can tell what that is at the moment.
    .type chase_start, @function
chase_start:                            # rbx = frame
    .cfi_startproc
    save %rax
    save %rdx
    save %rcx
    cmpl $0, {clock_kind}(%rip)
    jne 2f
    lfence
    rdtsc
    shlq $32, %rdx
    orq %rdx, %rax
1:
    movq {NODE}(%rbx), %rcx
    movq %rax, {START}(%rbx)
    movq %rax, {LAST_START}(%rcx)
    movq {SAVED_RCX}(%rbx), %r11        # the real function
    restore %rcx
    restore %rdx
    restore %rax
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
    .size chase_start, . - chase_start

# rax = what is recorded, at this moment, of a call of an empty function that chase_start begins.
    .hidden chase_probe
    .globl chase_probe
    .type chase_probe, @function
chase_probe:
    .cfi_startproc
    leaq .Lnothing(%rip), %r11
    subq $24, %rsp
    .cfi_adjust_cfa_offset 24
    lfence
    rdtsc
    shlq $32, %rdx
    orq %rdx, %rax
    movq %rax, (%rsp)                   # two stores and three loads, as there
    movq %rax, 8(%rsp)
    movq 16(%rsp), %rcx
    movq 8(%rsp), %rsi
    movq (%rsp), %rdi
    callq 1f
    rdtsc
    shlq $32, %rdx
    orq %rdx, %rax
    subq %rdi, %rax
    addq $24, %rsp
    .cfi_adjust_cfa_offset -24
    retq
1:
    .cfi_adjust_cfa_offset 32
    callq 2f
    int3
2:
    .cfi_adjust_cfa_offset 8
    movq %r11, (%rsp)
    retq
.Lnothing:
    .cfi_adjust_cfa_offset -8
    retq
    .cfi_endproc
    .size chase_probe, . - chase_probe

# ---- the other clock ----------------------------------------------------------------------------
# rax = CLOCK_MONOTONIC in ns, by a system call that no library sees, or the time at which the clock
# was stopped. All other registers but rdx are preserved.
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
    movq chase_thread@gottpoff(%rip), %rcx
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
    movq chase_thread@gottpoff(%rip), %rcx
    movq %rsi, %fs:{CONTEXT}(%rcx)
    restore %r11
    restore %rdi
    restore %rsi
    restore %rcx
    retq
    .cfi_endproc
    .size chase_clock, . - chase_clock
