# The stubs that GOT entries point to: each enters the common path with its slot's number in r11.
#
# They are part of the library's own text, so no code is ever writable, and pages that no slot uses are never read
# from disk. They are written as data because an assembler would spend many passes trying to shorten their jumps.

# The stub of a call that is only counted, or timed when its countdown says so: {STUB} bytes. r11 is the one register
# that is free. Counting is a single instruction, so a signal handler runs before or after it. A stub fits into half a
# cache line and doesn't end in a jump, which some processors would decode anew each time. There is no endbr64, which
# would not fit: nothing demands it of a library that does not claim it.
#
#     decw %fs:WORDS+NEAR_COUNTDOWNS+2*number   # of the first {NEAR} slots; of others:
#
#     movq %fs:WORDS, %r11                  # this thread's countdowns
#     decw {COUNTDOWN}*number(%r11)
#
#     jle its place in chase_stub_ends      # zero, negative, or wrapped from -32768 to 32767
#     jmpq *targets+8*number(%rip)          # counted only: the real function, the stack as it was.
#                                           # (direct.rs makes that a jmp to the function itself)
#
# The offset of a thread's words is known at build time: chase_thread is aligned so that the little thread-local
# storage that most executables have fits beside it. Loading the offset first, as position-independent code does,
# would take as long as all the rest, because each load waits for the one before it. The countdowns of all slots would
# take too much of a thread's stack, which static thread-local storage is part of.
.macro counting_stubs count
    .set number, 0
    .rept \count
    .if number < {NEAR}
    .byte 0x64, 0x66, 0xff, 0x0c, 0x25
    .long {WORDS} + {NEAR_COUNTDOWNS} + 2 * number
    .else
    .byte 0x64, 0x4c, 0x8b, 0x1c, 0x25
    .long {WORDS}
    .byte 0x66, 0x41, 0xff, 0x8b
    .long {COUNTDOWN} * number
    .endif
    .byte 0x0f, 0x8e
    .long chase_stub_ends + {ENDS_BLOCK} * (number / {ENDS}) + {END} * (number % {ENDS}) - . - 4
    .byte 0xff, 0x25
    .long {targets} + 8 * number - . - 4
    .p2align 5, 0xcc
    .set number, number + 1
    .endr
.endm

# The rest of a stub, and the whole stub where the thread's words are elsewhere. The flags stay as the countdown has
# set them. Each has {END} bytes, and {ENDS} share a jump: there are two for each slot, and address space can be
# scarce.
#
#     movl $number, %r11d
#     jmp 1f
#     ...
# 1:  jmp entry
.macro stub_ends entry count
    .set number, 0
    .rept \count / {ENDS}
    .rept {ENDS}
    .byte 0x41, 0xbb
    .long number
    .byte 0xeb, {END} * ({ENDS} - 1 - number % {ENDS})
    .set number, number + 1
    .endr
    .byte 0xe9
    .long \entry - . - 4
    .byte 0xcc, 0xcc, 0xcc
    .endr
.endm

# The stub of a special function: endbr64; movl $number, %r11d; jmp entry. {SPECIAL_STUB} bytes.
.macro special_stubs entry count
    .set number, 0
    .rept \count
    .byte 0xf3, 0x0f, 0x1e, 0xfa, 0x41, 0xbb
    .long number
    .byte 0xe9
    .long \entry - . - 4
    .byte 0x90
    .set number, number + 1
    .endr
.endm

    .text
    .p2align 12
    .hidden chase_stubs
    .globl chase_stubs
    .type chase_stubs, @function
chase_stubs:
    .cfi_startproc
    counting_stubs {STUBS}
    .cfi_endproc
    .size chase_stubs, . - chase_stubs

    .p2align 6
    .type chase_stub_ends, @function
chase_stub_ends:
    .cfi_startproc
    stub_ends chase_counted_near, {STUBS}
    .cfi_endproc
    .size chase_stub_ends, . - chase_stub_ends

    .p2align 6
    .hidden chase_distant_stubs
    .globl chase_distant_stubs
    .type chase_distant_stubs, @function
chase_distant_stubs:
    .cfi_startproc
    stub_ends chase_distant, {STUBS}
    .cfi_endproc
    .size chase_distant_stubs, . - chase_distant_stubs

    .p2align 6
    .hidden chase_special_stubs
    .globl chase_special_stubs
    .type chase_special_stubs, @function
chase_special_stubs:
    .cfi_startproc
    special_stubs chase_special, {SPECIAL_STUBS}
    .cfi_endproc
    .size chase_special_stubs, . - chase_special_stubs
