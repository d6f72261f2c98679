# The path of one call: stub -> chase_enter -> the frame's pad -> the real function -> the pad -> chase_exit
# -> the application. (A call that is only counted jumps from the stub straight to the real function: stubs.S.)
#
# chase_enter changes no register that the callee may read (rdi rsi rdx rcx r8 r9, al, r10, all
# vector registers, the stack) and none that it must preserve. chase_exit preserves every register that
# may hold a result (rax rdx rcx r8, xmm0 xmm1, st0 st1).
#
# The return address moves from the stack into the frame, and the pad's call pushes its own in the same place. pads.S
# explains how pads are unwound through.
#
# There is no personality routine: when an exception or a cancellation passes a frame, it is set aside by the thread's
# next call, as after longjmp. (LLVM's libunwind identifies the handler's frame by its rsp. Ours and the caller's have
# the same one, so it would take ours for the handler's, and end the process because the personality does not act as a
# handler.)

# There are two copies of the path: near, for threads whose words are where stubs expect them, and far.

    .text
.macro call_path of
    .p2align 6
    .hidden chase_enter_\of
    .type chase_enter_\of, @function
chase_enter_\of:                        # r11 = slot, (rsp) = return address
    .cfi_startproc
    stash_rax
.Lenter_stashed_\of:
    stash_others
.Lenter_again_\of:
    load_thread \of %rcx                # rcx = thread
    load_context \of %rdx               # rdx = the caller's node
    imull ${HASH}, %r11d, %esi
    movl %edx, %eax
    shrl $3, %eax
    leal (%rax,%rax,8), %eax
    addl %eax, %esi                     # rsi = hash of both, as tree::hash
    {{disp32}} movq {TOP}(%rcx), %rax   # rax = the frame to claim
    whole 11
    testl ${SEGMENT_MASK}, %eax         # end of the segment, or no thread
    jz .Lenter_next_\of
    whole 10
    cmpq %rsp, {SP}-{FRAME}(%rax)       # the top frame must enclose this call
    jbe .Lenter_outside_\of
.Lenclosed_\of:
    shlq $32, %rdx
    orq %r11, %rdx                      # rdx = (caller, slot), the key
.Lprobe_\of:
    andq {MASK}(%rcx), %rsi
    addq {TABLE}(%rcx), %rsi
    whole 9
    cmpq %rdx, (%rsi)
    jne .Lcollision_\of
    {{disp32}} movq 8(%rsi), %rsi       # rsi = node
    movl ${FRAME}, %edx
    xaddq %rdx, {TOP}(%rcx)             # claimed: one instruction, so no signal handler gets it too
    whole 9
    cmpq %rdx, %rax
    jne .Lenter_moved_\of
.Lclaimed_\of:
    movq %rsi, {NODE}(%rax)
    movq (%rsp), %rdx
    movq %rdx, {RET}(%rax)
    leaq chase_exit_\of(%rip), %rdx
    movq %rdx, {EXIT}(%rax)
    load_target %r11 %rcx               # r11 = the real function
    movq %r11, {TARGET}(%rax)
    movq %rsp, {SP}(%rax)               # from here on the frame encloses calls of signal handlers
    movq %rax, %rcx                     # rcx = frame
    show_context \of %rsi %rdx
    read_clock %rcx .Lenter_clock_\of
.Lstarted_\of:
    incq {CALLS}(%rsi)                  # (the clock would wait for that)
    movq %rax, {START}(%rcx)
    movq %rax, {LAST_START}(%rsi)
    movq %rcx, %r11
    addq {distance}(%rip), %r11         # r11 = the frame's pad
    unstash
    leaq 8(%rsp), %rsp                  # the pad's call puts its own return address there
    cfi_return_below
    jmpq *%r11

    .hidden chase_exit_\of
    .globl chase_exit_\of
chase_exit_\of:                         # r11 = frame
    cfi_return_in_frame
    movq %rax, %r9                      # results are in rax and rdx by the ABI; rcx and r8, which stay,
    movq %rdx, %r10                     # hold more by other conventions, like Swift's
    show_caller \of .Lnot_top_\of
.Lcaller_shown_\of:
    read_clock %r11 .Lexit_clock_\of
.Lended_\of:
    movq {NODE}(%r11), %rsi             # rsi = node
    subq {START}(%r11), %rax            # rax = ticks
    whole 9
    cmpq {short_limit}(%rip), %rax
    jae .Llong_\of
    leaq {short_buckets}(%rip), %rdx
    movl {PAGES}(%rsi), %edi            # edi = page of the histogram, and edx = bucket in it, as
    cmpl ${SECOND_PAGE}, %eax           # histogram::bucket_of
    cmovael {PAGES}+4(%rsi), %edi
    cmpl ${THIRD_PAGE}, %eax
    cmovael {PAGES}+8(%rsi), %edi
    movzbl (%rdx,%rax), %edx
.Lpage_\of:
    whole 8
    testl %edi, %edi
    jz .Lleave_unrecorded_\of           # the first call in this page
    shlq $7, %rdi
    addq {base}(%rip), %rdi
    movq $0, {SP}(%r11)                 # from here on, a jump or cancellation finds no open call; until it is
    incq (%rdi,%rdx,8)                  # counted, Thread::count_unrecorded_ends counts it
    addq %rax, {TOTAL}(%rsi)
    whole 6
    cmpq {MAX}(%rsi), %rax
    ja .Lmaximum_\of
.Lrecorded_\of:
    pushq {RET}(%r11)
    cfi_return_on_stack
    movq {NODE}-{FRAME}(%r11), %rsi     # rsi = the caller's node
    load_thread \of %rdi
    subq ${FRAME}, {TOP}(%rdi)          # released: one instruction, for signal handlers
    whole 9
    cmpq %r11, {TOP}(%rdi)              # ... unless one has switched stacks in between
    jne .Lleave_moved_\of
    show_context \of %rsi %rdi
    movq %r9, %rax
    movq %r10, %rdx
    whole 1
    retq

# ---- out of line --------------------------------------------------------------------------------
.Lmaximum_\of:
    cfi_return_in_frame
    movq %rax, {MAX}(%rsi)
    jmp .Lrecorded_\of

.Llong_\of:
    cmpq {long}(%rip), %rax             # so long that more is to be known of it
    jae .Lmore_\of
    # histogram::bucket_of
    movq %rcx, %rdi
    movq %rax, %rcx
    orq ${LINEAR_LIMIT}, %rcx
    bsrq %rcx, %rcx
    cmpl ${MAX_EXPONENT}, %ecx
    ja .Llast_bucket_\of
    subl ${SUB_BITS}, %ecx
    movq %rax, %rdx
    shrq %cl, %rdx
    leal -16(%rdx,%rcx,8), %edx
    movq %rdi, %rcx
    movl %edx, %edi
    shrl $4, %edi
    andl $15, %edx
    movl {PAGES}(%rsi,%rdi,4), %edi
    jmp .Lpage_\of

.Lmore_\of:
    cmpq {events_below}(%rip), %rax     # 0, unless all calls are events and that is all that is to be known
    jae .Lleave_unrecorded_\of
    # The call is recorded as above. Registers that may hold results are in the red zone of the function that has returned.
    movq %rcx, -16(%rsp)
    movq %r8, -24(%rsp)
    movq %rax, %rcx                     # histogram::bucket_of, of what has a bucket of its own
    orq ${LINEAR_LIMIT}, %rcx
    bsrq %rcx, %rcx
    subl ${SUB_BITS}, %ecx
    movq %rax, %rdx
    shrq %cl, %rdx
    leal -16(%rdx,%rcx,8), %edx
    movl %edx, %edi
    shrl $4, %edi
    andl $15, %edx
    movl {PAGES}(%rsi,%rdi,4), %edi
    testl %edi, %edi
    jz .Lnot_written_\of                # the first call in this page: by the slow half, with its event
    shlq $7, %rdi
    addq {base}(%rip), %rdi
    movq {START}(%r11), %r8             # r8 = start
    movq $0, {SP}(%r11)
    incq (%rdi,%rdx,8)
    addq %rax, {TOTAL}(%rsi)
    cmpq {MAX}(%rsi), %rax
    jbe 1f
    movq %rax, {MAX}(%rsi)
1:
    load_thread \of %rdx
    movq {EVENTS_HEAD}(%rdx), %rdi      # rdi = the chunk that is being filled
    movl $1, %ecx
    xaddq %rcx, {EVENTS_NEXT}(%rdx)     # rcx = place in it: one instruction, for signal handlers
    cmpq {EVENTS_CAPACITY}(%rdx), %rcx
    jae .Lno_place_\of
    cmpq %rdi, {EVENTS_HEAD}(%rdx)      # ... unless one has gone on to another chunk in between
    jne .Lno_place_\of
    shlq ${EVENT_SHIFT}, %rcx
    leaq {EVENT}(%rdi,%rcx), %rdi       # rdi = event: behind the chunk's head, which is as long as one
    movl $1, %ecx
    xaddq %rcx, {EVENTS_COUNT}(%rdx)
    incq %rcx                           # rcx = its number
    movq $0, {EVENT_NUMBER}(%rdi)       # half written from here on
    movq %r8, {EVENT_START}(%rdi)
    movq %rax, {EVENT_TICKS}(%rdi)
    rolq $21, %rax                      # EventRecord::check_of
    xorq %rax, %r8
    movq %rsi, %rax
    subq {base}(%rip), %rax
    shrq $7, %rax                       # rax = reference of the node
    movl %eax, {EVENT_SUBJECT}(%rdi)
    shlq $8, %rax
    orq ${EVENT_CALL}, %rax
    rolq $42, %rax
    xorq %rax, %r8
    movabsq ${EVENT_MIX}, %rax
    imulq %rcx, %rax
    xorq %rax, %r8
    movq %r8, %rax
    shrq $32, %rax
    xorl %r8d, %eax
    movl %eax, %edx
    shrl $16, %edx
    xorl %edx, %eax
    shll $16, %eax
    orl ${EVENT_CALL}, %eax             # kind, padding and check
    movl %eax, {EVENT_KIND}(%rdi)
    movq %rcx, {EVENT_NUMBER}(%rdi)     # whole
    movq -16(%rsp), %rcx
    movq -24(%rsp), %r8
    jmp .Lrecorded_\of

.Lno_place_\of:                         # the chunk is full: this event by the slow half
    movq %r8, %rdi                      # rdi = start
    movq -16(%rsp), %rcx
    movq -24(%rsp), %r8
    pushq {RET}(%r11)
    cfi_return_on_stack
    push_results
    save %r11
    movq %rax, %rdx                     # rdx = ticks
    xchgq %rsi, %rdi                    # rdi = node, rsi = start
    call_rust {note_event}
    restore %r11
    pop_results
    movq %rax, %r9
    movq %rdx, %r10
    addq $8, %rsp
    cfi_return_in_frame
    jmp .Lrecorded_\of

.Lnot_written_\of:
    movq -16(%rsp), %rcx
    movq -24(%rsp), %r8
    jmp .Lleave_unrecorded_\of

.Llast_bucket_\of:
    movq %rdi, %rcx
.Lleave_unrecorded_\of:
    addq {START}(%r11), %rax
.Lleave_slow_\of:                       # rax = now
    pushq {RET}(%r11)
    cfi_return_on_stack
    push_results
    movq %r11, %rdi
    movq %rax, %rsi
    call_rust {leave_slow}
    pop_results
    retq

.Lleave_moved_\of:                      # recorded, but not on top any more
    cfi_return_on_stack
    push_results
    movq %r11, %rdi
    call_rust {leave_moved}
    pop_results
    retq

.Lenter_outside_\of:                    # a tail call takes over its caller's place on the stack
    .cfi_def_cfa rsp, 8
    .cfi_offset rip, -8
    .cfi_restore rsp
    jb .Lenter_slow_\of
    jump_if_named (%rsp) %rax 1f
    jmp .Lenter_slow_\of
1:
    load_context \of %rdx
    jmp .Lenclosed_\of

.Lenter_next_\of:
    enter_next_segment .Lenter_slow_\of
    jmp .Lenter_again_\of

.Lcollision_\of:                        # linear probing; an empty entry ends it
    btsq ${WITH_ARGUMENT}, %rdx
    cmpq %rdx, (%rsi)
    je chase_argument_\of
    btrq ${WITH_ARGUMENT}, %rdx
    cmpq $0, (%rsi)
    je .Lenter_slow_\of
    subq {TABLE}(%rcx), %rsi
    addq $16, %rsi
    jmp .Lprobe_\of

.Lcountdown_ended_\of:                              # flags still tell where the countdown is
    stash
    movl ${AT_ZERO}, %esi                # zero: this call stands for others
    jz .Lenter_slow_moved_\of
    movl ${WRAPPED}, %esi               # it wrapped round: time to look at how the slot is used, or, where calls
                                        # get frames, for a sample
    jmp .Lenter_slow_moved_\of

.Lenter_moved_\of:                      # a handler claimed a frame between our look and our claim
    movq %rdx, %rsi
    jmp .Lenter_slow_moved_\of
.Lenter_slow_\of:
    xorl %esi, %esi                     # rsi = 0, why, or a frame that was claimed and is not wanted
.Lenter_slow_moved_\of:
    keep_stash
    save %rdi
    save %r8
    save %r9
    save %r10
    save %r11
    push_vectors
    movl %r11d, %edi
    movq %rsi, %rcx
    leaq 200(%rsp), %rsi                # where the return address is
    movq %rcx, %rdx
    align_stack
    cmpl ${AT_ZERO}, %ecx
    je 1f
    cmpl ${WRAPPED}, %ecx
    je 1f
    callq {enter_slow}
    jmp 2f
1:
    callq {enter_counted_down}
2:
    unalign_stack
    pop_vectors
    restore %r11
    restore %r10
    restore %r9
    restore %r8
    restore %rdi
    load_target %r11 %rcx
    testq %rax, %rax
    jz .Lbypass_\of
    leaq chase_start_\of(%rip), %rcx
    btrq $0, %rax                       # kept with its duration
    jc .Lstart_kept_\of
    cmpl $0, {WEIGHT}(%rax)
    je .Lstart_\of
    leaq chase_start_sample(%rip), %rcx
.Lstart_\of:
    movq %r11, {EXIT}(%rax)             # until chase_start has read it
    movq %rcx, {TARGET}(%rax)
    movq {NODE}(%rax), %rsi
    show_context \of %rsi %rcx
    movq %rax, %r11
    addq {distance}(%rip), %r11
    restore %rsi
    restore %rcx
    restore %rdx
    restore %rax
    leaq 8(%rsp), %rsp
    cfi_return_below
    jmpq *%r11

.Lstart_kept_\of:
    .cfi_def_cfa rsp, 40
    .cfi_offset rip, -8
    .cfi_restore rsp
    leaq chase_start_kept(%rip), %rcx
    jmp .Lstart_\of

.Lbypass_\of:                           # no frame to be had: the call runs untimed
    .cfi_def_cfa rsp, 40
    .cfi_offset rip, -8
    .cfi_restore rsp
    restore %rsi
    restore %rcx
    restore %rdx
    restore %rax
    jmpq *%r11

.Lenter_clock_\of:
    subq $32, %rsp                      # the stash
    .cfi_adjust_cfa_offset 32
    callq chase_clock
    addq $32, %rsp
    .cfi_adjust_cfa_offset -32
    jmp .Lstarted_\of

.Lexit_clock_\of:
    cfi_return_in_frame
    callq chase_clock
    load_thread \of %rdx
    leaq {FRAME}(%r11), %rdi
    cmpq %rdi, {TOP}(%rdx)
    je .Lended_\of
    jmp .Lleave_slow_\of               # a signal handler has switched stacks during that system call

.Lnot_top_\of:
    leave_next_segment %rdx 1f
    movq {NODE}-{FRAME}(%r11), %rsi
    show_context \of %rsi %rdi
    jmp .Lcaller_shown_\of
1:
    read_clock %r11 .Lnot_top_clock_\of
    jmp .Lleave_slow_\of
.Lnot_top_clock_\of:
    callq chase_clock
    jmp .Lleave_slow_\of
    .cfi_endproc
    .size chase_enter_\of, . - chase_enter_\of
.endm

    call_path near
    call_path far

# The exits that are always taken by the slow half: of samples, and of calls that are kept with their duration (arguments.S).
.macro slow_exit of leave
    .p2align 4
    .type chase_exit_\of, @function
chase_exit_\of:                         # r11 = frame
    .cfi_startproc
    cfi_return_in_frame
    movq %rax, %r9
    movq %rdx, %r10
    read_clock %r11 .Lexit_clock_\of
.Lended_\of:
    pushq {RET}(%r11)
    cfi_return_on_stack
    push_results
    movq %r11, %rdi
    movq %rax, %rsi
    call_rust \leave
    pop_results
    retq
.Lexit_clock_\of:
    cfi_return_in_frame
    callq chase_clock
    jmp .Lended_\of
    .cfi_endproc
    .size chase_exit_\of, . - chase_exit_\of
.endm

    slow_exit sample {leave_slow}
    slow_exit kept {leave_kept}

# The exit of a frame that was set aside because its call seemed never to return, and that has returned after all.
    .p2align 4
    .hidden chase_exit_set_aside
    .globl chase_exit_set_aside
    .type chase_exit_set_aside, @function
chase_exit_set_aside:                        # r11 = frame
    .cfi_startproc
    pushq {RET}(%r11)
    movq %rax, %r9
    movq %rdx, %r10
    push_results
    movq %r11, %rdi
    call_rust {leave_set_aside}
    pop_results
    retq
    .cfi_endproc
    .size chase_exit_set_aside, . - chase_exit_set_aside
