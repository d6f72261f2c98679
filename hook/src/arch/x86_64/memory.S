# The functions that compilers generate calls to. Those of the C library use whole vector registers, whose upper
# halves may hold the application's arguments while our code runs; these use none. They are hidden: the application
# keeps its own.

    .text
    .p2align 4
    .hidden memcpy
    .globl memcpy
    .type memcpy, @function
memcpy:
    .cfi_startproc
    movq %rdi, %rax
    movq %rdx, %rcx
    leaq -8(%rdx), %r8
    cmpq $120, %r8
    ja 3f                               # less than 8 bytes, or many
    movq (%rsi,%r8), %r9                # the last 8, which may overlap with those before them
1:  subq $8, %rcx
    jbe 2f
    movq (%rsi), %r10
    movq %r10, (%rdi)
    addq $8, %rsi
    addq $8, %rdi
    jmp 1b
2:  movq %r9, (%rax,%r8)
    retq
3:  rep movsb
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
1:  subq $8, %rdx
    jb 2f
    movq (%rdi), %rax
    movq (%rsi), %rcx
    addq $8, %rdi
    addq $8, %rsi
    cmpq %rcx, %rax
    je 1b
    bswapq %rax                         # the first byte that differs decides
    bswapq %rcx
    cmpq %rcx, %rax
    sbbl %eax, %eax
    orl $1, %eax
    retq
2:  addq $8, %rdx
    je 4f
3:  movzbl (%rdi), %eax
    movzbl (%rsi), %ecx
    incq %rdi
    incq %rsi
    subl %ecx, %eax
    jne 5f
    decq %rdx
    jne 3b
4:  xorl %eax, %eax
5:  retq
    .cfi_endproc
    .size memcmp, . - memcmp
    .size bcmp, . - bcmp

    .p2align 4
    .hidden strlen
    .globl strlen
    .type strlen, @function
strlen:
    .cfi_startproc
    movabsq $0x0101010101010101, %r8
    movabsq $0x8080808080808080, %r9
    movl %edi, %ecx
    shll $3, %ecx
    movq $-1, %r10
    shlq %cl, %r10                      # the shift is taken modulo 64
    notq %r10
    movq %rdi, %rsi
    andq $-8, %rsi                      # an aligned word is in one page
    orq (%rsi), %r10                    # bytes before the string are none of its zeros
1:  movq %r10, %rax
    subq %r8, %rax
    notq %r10
    andq %r10, %rax
    andq %r9, %rax                      # its lowest bit is that of the first zero byte
    jne 2f
    addq $8, %rsi
    movq (%rsi), %r10
    jmp 1b
2:  bsfq %rax, %rax
    shrq $3, %rax
    addq %rsi, %rax
    subq %rdi, %rax
    retq
    .cfi_endproc
    .size strlen, . - strlen

# The core library's unwind tables refer to this function. Nothing of ours unwinds.
    .p2align 4
    .hidden rust_eh_personality
    .globl rust_eh_personality
    .type rust_eh_personality, @function
rust_eh_personality:
    .cfi_startproc
    ud2
    .cfi_endproc
    .size rust_eh_personality, . - rust_eh_personality
