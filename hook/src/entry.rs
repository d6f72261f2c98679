//! What the library does when it is run as a program: prints what it is, and exits.
//!
//! The kernel starts it without a dynamic linker, so nothing is relocated and there is no C library: the code must be
//! position-independent.

use core::arch::global_asm;

const TEXT: &str = concat!(
    "libchase.so of chase ",
    env!("CARGO_PKG_VERSION"),
    ": times every shared-library call of a program it is preloaded into.\n\n",
    "    chase record ./app              with chase beside it; chase --help has more\n",
    "    LD_PRELOAD=/path/to/libchase.so ./app\n",
    "    chase-report                    what was recorded, in chase.data/\n",
);

#[used]
static SAID: [u8; TEXT.len()] = {
    let mut bytes = [0; TEXT.len()];
    let mut i = 0;
    while i < bytes.len() {
        bytes[i] = TEXT.as_bytes()[i];
        i += 1;
    }
    bytes
};

global_asm!(
    ".globl chase_entry",
    ".hidden chase_entry",
    ".type chase_entry, @function",
    "chase_entry:",
    "mov $1, %eax",
    "mov $1, %edi",
    "lea {said}(%rip), %rsi",
    "mov ${len}, %edx",
    "syscall",
    // If the reader has closed the pipe, that is not an error.
    "mov $231, %eax",
    "xor %edi, %edi",
    "syscall",
    "ud2",
    ".size chase_entry, . - chase_entry",
    said = sym SAID,
    len = const TEXT.len(),
    options(att_syntax)
);
