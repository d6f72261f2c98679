# Building blocks of the call path. They keep the CFA up to date as registers are saved on the stack.

.macro save register
    pushq \register
    .cfi_adjust_cfa_offset 8
.endm
.macro restore register
    popq \register
    .cfi_adjust_cfa_offset -8
.endm

# Calls Rust code, which needs a stack that is aligned to 16 bytes. Programs may call a library without that (code in
# assembly, of other compilers, or with -mpreferred-stack-boundary=3; tasks whose stack was given to an old C library's clone).
.macro align_stack
    save %rbx
    .cfi_rel_offset rbx, 0
    movq %rsp, %rbx
    .cfi_def_cfa_register rbx
    andq $-16, %rsp
.endm
.macro unalign_stack
    movq %rbx, %rsp
    .cfi_def_cfa_register rsp
    restore %rbx
    .cfi_restore rbx
.endm
.macro call_rust function
    align_stack
    callq \function
    unalign_stack
.endm

# Makes sure that the jump that follows, of `bytes` with its comparison, neither crosses nor ends at a multiple of 32.
# Some Intel processors decode such a jump anew each time, which is slow while the other hardware thread of the core
# decodes too. A few {{disp32}} before it make the padding unnecessary, at least in `near`.
.macro whole bytes
    .p2align 5, , \bytes
.endm

# Saves the registers that the call path needs for itself in the red zone below the stack pointer: the stack stays as
# it is, and signal handlers leave these 128 bytes alone.
.macro stash_rax
    movq %rax, -8(%rsp)                 # al: number of vector arguments of a variadic call
.endm
.macro stash_others
    movq %rdx, -16(%rsp)
    movq %rcx, -24(%rsp)
    movq %rsi, -32(%rsp)
.endm
.macro stash
    stash_rax
    stash_others
.endm
.macro unstash
    movq -32(%rsp), %rsi
    movq -24(%rsp), %rcx
    movq -16(%rsp), %rdx
    movq -8(%rsp), %rax
.endm
# Turns the stashed registers into pushed ones, for calls, as if they had been saved in this order.
.macro keep_stash
    subq $32, %rsp
    .cfi_adjust_cfa_offset 32
.endm

# Saves the vector registers that hold arguments. Rust code here only touches their lower halves; the upper ones stay
# as they are.
.macro push_vectors
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
.endm
.macro pop_vectors
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
.endm

# Saves all registers that may hold a result; r9 and r10 have what was in rax and rdx.
.macro push_results
    save %r9
    save %r10
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

# ---- CFI ----------------------------------------------------------------------------------------
# In an exit, the return address is in the frame that r11 points to. (Only signal handlers and debuggers unwind from
# here; they know r11.) CFA and rsp are as in the pads.
.macro cfi_return_in_frame
    # CFA = rsp + 15 - ((r11 >> 6) & 7) (DW_CFA_def_cfa_expression)
    .cfi_escape 0x0f, 0x09, 0x77, 0x0f, 0x7b, 0x00, 0x36, 0x25, 0x37, 0x1a, 0x1c
    .cfi_escape 0x10, 0x10, 0x02, 0x7b, {RET}       # return address = *(r11 + 0)
    .cfi_escape 0x16, 0x07, 0x02, 0x77, 0x00        # rsp = rsp (DW_CFA_val_expression)
.endm
# Before the jump to the pad, which r11 points to, the return address is still below the stack pointer.
.macro cfi_return_below
    .cfi_escape 0x0f, 0x09, 0x77, 0x0f, 0x7b, 0x00, 0x36, 0x25, 0x37, 0x1a, 0x1c
    .cfi_escape 0x10, 0x10, 0x02, 0x77, 0x78        # return address = *(rsp - 8)
    .cfi_escape 0x16, 0x07, 0x02, 0x77, 0x00
.endm
# The return address is on top of the stack again. (Not `.cfi_restore rip`: libgcc takes that for "unchanged", and
# finds the same frame again.)
.macro cfi_return_on_stack
    .cfi_def_cfa rsp, 8
    .cfi_offset rip, -8
    .cfi_restore rsp
.endm

# Reads the clock into rax; rdx is lost. A clock other than the time stamp counter is read out of line for all frames,
# because their addresses are above the limit. (That comparison is one micro-operation; comparing the kind of clock to
# a constant would be three.)
.macro read_clock frame slow
    whole 13
    cmpq {clock_limit}(%rip), \frame
    ja \slow
    rdtsc
    shlq $32, %rdx
    orq %rdx, %rax
.endm

# Loads the real function of slot `to` into `to`. `scratch` is lost.
.macro load_target to scratch
    leaq {targets}(%rip), \scratch
    movq (\scratch,\to,8), \to
.endm

# ---- the thread's words -------------------------------------------------------------------------
# `of` is near if the words are at {WORDS} from the thread pointer, and far if their offset has to be loaded.
.macro load_thread of to
    .ifc \of, near
    movq %fs:{WORDS}+{THREAD}, \to
    .else
    movq {words_at}(%rip), \to
    movq %fs:{THREAD}(\to), \to
    .endif
.endm
.macro load_counts of to
    .ifc \of, near
    movq %fs:{WORDS}, \to
    .else
    movq {words_at}(%rip), \to
    movq %fs:(\to), \to
    .endif
.endm
.macro load_context of to
    .ifc \of, near
    movq %fs:{WORDS}+{CONTEXT}, \to
    .else
    movq {words_at}(%rip), \to
    movq %fs:{CONTEXT}(\to), \to
    .endif
.endm
# Makes the node in `from` the thread's context. `scratch` is lost.
.macro show_context of from scratch
    .ifc \of, near
    movq \from, %fs:{WORDS}+{CONTEXT}
    .else
    movq {words_at}(%rip), \scratch
    movq \from, %fs:{CONTEXT}(\scratch)
    .endif
.endm

# At an exit, before the clock is read: makes the caller of the frame in r11 the thread's context. Most time of a short
# call is that of its two clock reads. If other threads get the processor before the second read, that time is the call's;
# after it, the caller's: by the clock and by the context alike. Jumps to `not_top` if the frame is not the top one of
# this thread, which may be another one than at entry. rdx, rsi and rdi are lost.
.macro show_caller of not_top
    load_thread \of %rdx
    leaq {FRAME}(%r11), %rdi
    whole 9
    cmpq %rdi, {TOP}(%rdx)
    jne \not_top
    movq {NODE}-{FRAME}(%r11), %rsi
    show_context \of %rsi %rdi
.endm

# At the end of a segment, with the top in rax and the thread in rcx: enters the next one, as `Thread::enter_next` does.
# Jumps to `slow` if there is none, or no thread. If a signal handler has moved the top meanwhile, that is left as it is:
# the code that follows looks at the top again. rax, rdx and rsi are lost.
.macro enter_next_segment slow
    testq %rax, %rax
    jz \slow
    cmpq %rcx, {OWNER}-{SEGMENT}(%rax)  # as `Thread::is_at_end`
    jne \slow
    movq {NEXT}-{SEGMENT}(%rax), %rdx
    testq %rdx, %rdx
    jz \slow
    movq {SP}-{FRAME}(%rax), %rsi       # a header is a copy of the frame below
    movq %rsi, {SP}(%rdx)
    movq {NODE}-{FRAME}(%rax), %rsi
    movq %rsi, {NODE}(%rdx)
    addq ${FRAME}, %rdx
    cmpxchgq %rdx, {TOP}(%rcx)          # one instruction, for signal handlers
.endm

# At the exit of a frame that ends at rdi and is not the top one: if it is the last of its segment, and the next one is
# empty, moves the top back to it. Otherwise jumps to `not_top`. rax is lost.
.macro leave_next_segment thread not_top
    testl ${SEGMENT_MASK}, %edi
    jnz \not_top
    movq {NEXT}-{SEGMENT}(%rdi), %rax
    addq ${FRAME}, %rax                 # (of no segment: what is no thread's top)
    cmpxchgq %rdi, {TOP}(\thread)
    jne \not_top
.endm

# Jumps to `to` if the return address at `place` is in the pad of the frame below `top`. rdx is lost.
.macro jump_if_named place top to
    movq \place, %rdx
    subq {distance}(%rip), %rdx
    addq ${FRAME} - {PAD_CALL}, %rdx
    cmpq %rdx, \top
    je \to
.endm
