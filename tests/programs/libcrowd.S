# FUNCTIONS functions, crowd_0 and on, which give 1; each has an entry that calls go through.
# crowd_run calls the first and the last one and gives the sum.

    .altmacro

    .macro define number
    .globl crowd_\number
    .type crowd_\number, @function
crowd_\number:
    movl $1, %eax
    ret
    .size crowd_\number, . - crowd_\number
    .endm

    .macro import number
    jmp crowd_\number@PLT
    .endm

    .macro each what
    .set at, 0
    .rept FUNCTIONS
    \what %at
    .set at, at + 1
    .endr
    .endm

    .macro call_last number
    call crowd_\number@PLT
    .endm

    .text
    each define
    each import                         # never run

    .globl crowd_run
    .type crowd_run, @function
crowd_run:
    pushq %rbx
    call crowd_0@PLT
    movl %eax, %ebx
    call_last %FUNCTIONS-1
    addl %ebx, %eax
    popq %rbx
    ret
    .size crowd_run, . - crowd_run

    .section .note.GNU-stack, "", @progbits
