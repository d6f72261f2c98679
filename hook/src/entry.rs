//! What the library does when it is run as a program: prints what it is, and exits.
//!
//! The kernel starts it without a dynamic linker, so nothing is relocated and there is no C library: the code must be
//! position-independent.

use core::arch::global_asm;

const PIECES: [&str; 4] = [
    "libchase.so of chase ",
    chase_version::VERSION,
    if cfg!(feature = "stress") { ", which samples all calls that it can, for tests" } else { "" },
    TEXT,
];

const TEXT: &str = concat!(
    ": times every shared-library call of a program it is preloaded into.\n\n",
    "    chase record ./app              with chase beside it; chase --help has more\n",
    "    LD_PRELOAD=/path/to/libchase.so ./app\n",
    "    chase-report                    what was recorded, in chase.data/\n",
);

const LEN: usize = {
    let (mut len, mut piece) = (0, 0);
    while piece < PIECES.len() {
        len += PIECES[piece].len();
        piece += 1;
    }
    len
};

#[used]
static SAID: [u8; LEN] = {
    let mut bytes = [0; LEN];
    let (mut at, mut piece) = (0, 0);
    while piece < PIECES.len() {
        let mut i = 0;
        while i < PIECES[piece].len() {
            bytes[at] = PIECES[piece].as_bytes()[i];
            (at, i) = (at + 1, i + 1);
        }
        piece += 1;
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
    len = const LEN,
    options(att_syntax)
);
