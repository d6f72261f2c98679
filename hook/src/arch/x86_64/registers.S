# Saving registers on the stack, with the unwinder told where the CFA is.

.macro save register
    pushq \register
    .cfi_adjust_cfa_offset 8
.endm
.macro restore register
    popq \register
    .cfi_adjust_cfa_offset -8
.endm

# The vector registers that hold arguments. Rust code here touches no more of them than their lower
# halves; the upper ones stay as they are.
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
