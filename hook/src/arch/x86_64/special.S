# Entries that run Rust code before the function: of special functions, and of new threads.

# ---- special functions --------------------------------------------------------------------------
# Saves all argument registers, lets Rust code handle the call, and continues as if nothing had happened: through
# chase_enter, or straight in the real function with the stack as it was.
.macro restore_arguments
    pop_vectors
    restore %r11
    restore %r10
    restore %r9
    restore %r8
    restore %rdi
    restore %rsi
    restore %rcx
    restore %rdx
    restore %rax
.endm

    .text
    .p2align 4
    .type chase_special, @function
chase_special:                          # r11 = number of the special stub
    .cfi_startproc
    save %rax
    save %rdx
    save %rcx
    save %rsi
    save %rdi
    save %r8
    save %r9
    save %r10
    save %r11
    push_vectors
    leaq 128(%rsp), %rdi                # the saved registers, as special::Arguments
    call_rust {special}
    testl %eax, %eax
    jz .Lspecial_enter
    restore_arguments
    jmpq *%r11                          # r11 = the real function
.Lspecial_enter:
    .cfi_def_cfa_offset 208             # (the assembler does not know it after .cfi_restore_state)
    restore_arguments
    jmp chase_enter_far                 # r11 = slot
    .cfi_endproc
    .size chase_special, . - chase_special

# ---- replacements of the C library's functions ---------------------------------------------------
# Exported for programs that call these functions through pointers. Nobody else is bound to them: hooked objects call
# the real ones.
    .macro interposed name, number
    .p2align 4
    .globl chase_\name
    .hidden chase_\name
    .type chase_\name, @function
chase_\name:
    .cfi_startproc
    endbr64
    movl ${SPECIAL_STUBS} + \number, %r11d
    jmp chase_special
    .cfi_endproc
    .size chase_\name, . - chase_\name
    .endm
    interposed clone, 0
    interposed __clone, 1

# Stands for a real function that could not be found: returns -1.
    .p2align 4
    .hidden chase_no_function
    .globl chase_no_function
    .type chase_no_function, @function
chase_no_function:
    .cfi_startproc
    movq $-1, %rax
    retq
    .cfi_endproc
    .size chase_no_function, . - chase_no_function

# ---- the children of clone ----------------------------------------------------------------------
# Calls the start routine of a child of clone, in a process of its own, which ends when this returns.
    .p2align 4
    .hidden chase_clone_start
    .globl chase_clone_start
    .type chase_clone_start, @function
chase_clone_start:                      # rdi = routine and argument
    .cfi_startproc
    .cfi_undefined rip                  # this is the outermost function
    subq $8, %rsp
    .cfi_adjust_cfa_offset 8
    movq (%rdi), %rax
    movq 8(%rdi), %rdi
    callq *%rax
    movl %eax, (%rsp)
    movl %eax, %edi
    callq {clone_returned}
    movl (%rsp), %eax
    addq $8, %rsp
    .cfi_adjust_cfa_offset -8
    retq
    .cfi_endproc
    .size chase_clone_start, . - chase_clone_start

# ---- new threads --------------------------------------------------------------------------------
# Runs in place of the start routine and jumps to it, so that no frame of ours stays on the stack.
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
