# The thread-local words of a thread, and the stub's path where they are not where stubs expect them.

    .section .tdata, "awT", @progbits
    .balign {WORDS_ALIGN}               # so its offset is {WORDS} if the executable has little of its own
    .hidden chase_thread
    .type chase_thread, @object
    .size chase_thread, {NEAR_COUNTDOWNS} + 2 * {NEAR}
chase_thread:
    .quad {no_counts}                   # its countdowns; at first shared ones that stay at zero: every call is timed
    .quad {no_thread}                   # its Thread; at first the placeholder, which has no frames
    .quad 0                             # the context: the node of the innermost call
    .quad 0                             # owner of the near countdowns: the table of countdowns that they belong to
    .zero 2 * {NEAR}                    # the near countdowns

# Stands for the words of a thread where there is no room for them.
    .section .data.rel.ro, "aw", @progbits
    .balign 8
    .hidden chase_no_words
    .globl chase_no_words
    .type chase_no_words, @object
    .size chase_no_words, {NEAR_COUNTDOWNS}
chase_no_words:
    .quad {no_counts}
    .quad {no_thread}
    .quad 0
    .quad 0

    .text
    .p2align 6
    .type chase_distant, @function
chase_distant:                          # r11 = slot, (rsp) = return address
    .cfi_startproc
    save %rax
    load_counts far %rax
    decw (%rax,%r11,{COUNTDOWN})
    jle 1f
    load_target %r11 %rax
    restore %rax
    jmpq *%r11
1:
    .cfi_def_cfa_offset 16
    restore %rax                        # the flags stay
    jmp chase_counted_far
    .cfi_endproc
    .size chase_distant, . - chase_distant
