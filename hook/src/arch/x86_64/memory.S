# The functions that compilers name. The C library's use whole vector registers, whose upper
# halves may hold the application's arguments while our code runs; these use none. They are hidden:
# the application keeps its own.

    .text
    .p2align 4
    .hidden memcpy
    .globl memcpy
    .type memcpy, @function
memcpy:
    .cfi_startproc
    movq %rdi, %rax
    movq %rdx, %rcx
    rep movsb
    retq
    .cfi_endproc
    .size memcpy, . - memcpy

    .p2align 4
    .hidden memmove
    .globl memmove
    .type memmove, @function
memmove:
    .cfi_startproc
    movq %rdi, %rax
    movq %rdx, %rcx
    movq %rdi, %r8
    subq %rsi, %r8
    cmpq %rdx, %r8
    jb 1f                               # the target starts inside the source: copy backwards
    rep movsb
    retq
1:  leaq -1(%rsi,%rcx), %rsi
    leaq -1(%rdi,%rcx), %rdi
    std
    rep movsb
    cld
    retq
    .cfi_endproc
    .size memmove, . - memmove

    .p2align 4
    .hidden memset
    .globl memset
    .type memset, @function
memset:
    .cfi_startproc
    movq %rdi, %r8
    movl %esi, %eax
    movq %rdx, %rcx
    rep stosb
    movq %r8, %rax
    retq
    .cfi_endproc
    .size memset, . - memset

    .p2align 4
    .hidden memcmp
    .globl memcmp
    .type memcmp, @function
    .hidden bcmp
    .globl bcmp
    .type bcmp, @function
memcmp:
bcmp:
    .cfi_startproc
    xorl %ecx, %ecx
1:  cmpq %rdx, %rcx
    je 2f
    movzbl (%rdi,%rcx), %eax
    movzbl (%rsi,%rcx), %r8d
    incq %rcx
    subl %r8d, %eax
    je 1b
    retq
2:  xorl %eax, %eax
    retq
    .cfi_endproc
    .size memcmp, . - memcmp
    .size bcmp, . - bcmp

    .p2align 4
    .hidden strlen
    .globl strlen
    .type strlen, @function
strlen:
    .cfi_startproc
    xorl %eax, %eax
1:  cmpb $0, (%rdi,%rax)
    je 2f
    incq %rax
    jmp 1b
2:  retq
    .cfi_endproc
    .size strlen, . - strlen

# The core library's unwind tables name this one. Nothing of ours unwinds.
    .p2align 4
    .hidden rust_eh_personality
    .globl rust_eh_personality
    .type rust_eh_personality, @function
rust_eh_personality:
    .cfi_startproc
    ud2
    .cfi_endproc
    .size rust_eh_personality, . - rust_eh_personality
