# Frames, and the landing pads that name them.
#
# A frame holds the state of one call under way. Every pad is at the same {distance} from the frame of the same
# number, so the address that a call returns to, which is in its pad, identifies its frame. No register and no other
# word has to, so a garbage collector that scans registers and stacks finds what it would find without us. Where a
# stack, or a piece of one, is copied or moved to another thread, the frame's identity moves with it.
#
#     callq *target(frame)                  # the real function; returns to pad + {PAD_CALL}
#     leaq frame(%rip), %r11                # r11 is free: no result is in it
#     jmpq *exit(frame)
#
# All pads consist of the same bytes. They are written as data because an assembler would spend many passes trying to
# shorten their jumps.

    .section .bss.chase_frames, "aw", @nobits
    .p2align 12
    .hidden chase_frames
    .globl chase_frames
    .type chase_frames, @object
chase_frames:
    .skip {FRAMES} * {FRAME}
    .size chase_frames, . - chase_frames

    .text
    .p2align 12
    .hidden chase_pads
    .globl chase_pads
    .type chase_pads, @function
chase_pads:
    .set number, 0
    .rept {FRAMES}
    .byte 0xff, 0x15
    .long chase_frames + {FRAME} * number + {TARGET} - . - 4
    .byte 0x4c, 0x8d, 0x1d
    .long chase_frames + {FRAME} * number - . - 4
    .byte 0x41, 0xff, 0x63, {EXIT}
    .p2align 6, 0xcc
    .set number, number + 1
    .endr
.Lpads_end:
    .size chase_pads, . - chase_pads

# Unwind information of the pads, the same for all. No directive can express the distance, so the tables are written
# by hand. The return address is in the frame: at (rip & -64) + chase_frames - chase_pads, where rip is in the pad;
# rsp is unchanged.
#
# The CFA only serves to tell frames apart. With CFA = rsp, this frame and the callee's would be the same, and after a
# tail call two of ours are at one rsp. So the CFA is rsp + 15 less the frame's number modulo 8: it lies between the
# callee's (rsp) and the caller's (rsp + 16 or more), and grows outwards, as debuggers require.
    .section .eh_frame, "a", @progbits
    .p2align 3
.Lpads_cie:
    .long .Lpads_cie_end - .Lpads_cie_id
.Lpads_cie_id:
    .long 0
    .byte 1                             # version
    .asciz "zR"
    .uleb128 1                          # code alignment
    .sleb128 -8                         # data alignment
    .uleb128 16                         # column of the return address
    .uleb128 1
    .byte 0x1b                          # addresses are 32 bits, relative to where they stand
    .byte 0x0c, 7, 8                    # DW_CFA_def_cfa rsp + 8
    .p2align 3
.Lpads_cie_end:

    # The unwind information of a range of pads, all computed in the same way.
    .macro pads_fde first, length
    .long .Lpads_fde_end\@ - .Lpads_fde\@
.Lpads_fde\@:
    .long .Lpads_fde\@ - .Lpads_cie
    .long \first - .
    .long \length
    .uleb128 0
    # DW_CFA_def_cfa_expression: breg7 + 15, breg16 + 0, lit6, shr, lit7, and, minus
    .byte 0x0f, 9, 0x77, 15, 0x80, 0, 0x36, 0x25, 0x37, 0x1a, 0x1c
    .byte 0x16, 7, 2, 0x77, 0           # DW_CFA_val_expression: rsp = breg7 + 0
    .byte 0x10, 16                      # DW_CFA_expression of the return address
    .uleb128 .Lpads_return_end\@ - .Lpads_return\@
.Lpads_return\@:
    .byte 0x80, 0, 0x09, 0xc0, 0x1a     # breg16 + 0, const1s -64, and
.Lpads_here\@:
    .byte 0x0d                          # const4s chase_frames - here
    .long chase_frames - .Lpads_here\@
    .byte 0x22                          # plus
    .byte 0x0d                          # const4s chase_pads - here
    .long chase_pads - .Lpads_here\@
    .byte 0x1c                          # minus
.Lpads_return_end\@:
    .p2align 3
.Lpads_fde_end\@:
    .endm

    # In two halves: valgrind warns of an FDE that covers more than 5,000,000 bytes.
    .set .Lpads_half, (.Lpads_end - chase_pads) / 2
    pads_fde chase_pads, .Lpads_half
    pads_fde chase_pads + .Lpads_half, .Lpads_half
    .text
