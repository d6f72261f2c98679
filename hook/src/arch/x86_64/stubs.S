# The stubs that GOT entries point to: each loads its number and joins the common path.
#
# They are part of the library's own text, so there is never writable code, and pages that no slot
# uses are never read from disk. An entry is 16 bytes:
#     endbr64; movl $number, %r11d; jmp entry
# It is written as data because an assembler would look again and again for jumps to shorten.

.macro stubs entry count
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
    .p2align 6
    .hidden chase_stubs
    .globl chase_stubs
    .type chase_stubs, @function
chase_stubs:
    .cfi_startproc
    stubs chase_enter, {STUBS}
    .cfi_endproc
    .size chase_stubs, . - chase_stubs

    .p2align 6
    .hidden chase_special_stubs
    .globl chase_special_stubs
    .type chase_special_stubs, @function
chase_special_stubs:
    .cfi_startproc
    stubs chase_special, {SPECIAL_STUBS}
    .cfi_endproc
    .size chase_special_stubs, . - chase_special_stubs
