//! Reading the application's memory where it may not be mapped.
//!
//! What an address is, is the application's business: a word that looks like one may be a number.
//! So the kernel is asked first, by a call that only copies from the address in question. That is
//! `rt_sigprocmask` with a nonsensical first argument, which fails in one of two ways: it is among
//! the system calls that the hook makes anyway, so no sandbox minds. (`process_vm_readv` is made
//! for this, and is what sandboxes forbid, and may kill for.)
//!
//! Valgrind takes both that call and the read for errors of the program's. Where it watches, which it
//! tells who asks, words are read by `process_vm_readv`, of which it thinks nothing.
//!
//! Between the question and the read, another thread may unmap the page. Only memory that the
//! application is in the middle of handing over is read, so it would have to pull it from under its
//! own feet.

use core::sync::atomic::{AtomicU32, Ordering};

use crate::sys;

const PAGE: usize = 4096;
const WORD: usize = size_of::<usize>();
/// Pages known to be readable, each at the place that its address gives it.
const KNOWN: usize = 64;

/// What the kernel's answers are worth: not known yet, good, or no good; or words are copied by it.
static ANSWERS: AtomicU32 = AtomicU32::new(UNTESTED);
const UNTESTED: u32 = 0;
const RIGHT: u32 = 1;
const WRONG: u32 = 2;
const COPIES: u32 = 3;

/// How the kernel tells readable addresses from others.
fn answers() -> u32 {
    let mut answers = ANSWERS.load(Ordering::Relaxed);
    if answers == UNTESTED {
        let word = 0usize;
        answers = if is_on_valgrind() {
            COPIES
        } else if sys::can_read(&raw const word as usize) && !sys::can_read(WORD) {
            RIGHT
        } else {
            WRONG
        };
        ANSWERS.store(answers, Ordering::Relaxed);
    }
    answers
}

/// Whether valgrind runs the program: it knows this instruction sequence, which does nothing elsewhere.
fn is_on_valgrind() -> bool {
    const RUNNING_ON_VALGRIND: usize = 0x1001;
    let request = [RUNNING_ON_VALGRIND, 0, 0, 0, 0, 0];
    let mut answer = 0usize;
    // SAFETY: `rdi` is rotated by 128 bits in all, and `rbx` exchanged with itself.
    unsafe {
        core::arch::asm!(
            "rolq $3, %rdi",
            "rolq $13, %rdi",
            "rolq $61, %rdi",
            "rolq $51, %rdi",
            "xchgq %rbx, %rbx",
            inout("rdx") answer,
            in("rax") request.as_ptr(),
            inout("rdi") 0usize => _,
            options(att_syntax, nostack)
        );
    }
    answer != 0
}

/// Whether the eight bytes at `address`, which is aligned, can be read. False if nobody knows.
pub(crate) fn can_read(address: usize) -> bool {
    match answers() {
        RIGHT => sys::can_read(address),
        COPIES => sys::copy_word(address).is_some(),
        _ => false,
    }
}

/// Reads words, and remembers which pages may be read. Not to be kept: pages may go.
pub(crate) struct Reader {
    pages: [usize; KNOWN],
}

impl Reader {
    /// `None` if it can't be known what may be read.
    pub(crate) fn new() -> Option<Self> {
        (answers() != WRONG).then_some(Self { pages: [0; KNOWN] })
    }

    /// The word at `address`; `None` if it is not aligned or may not be read.
    pub(crate) fn word(&mut self, address: usize) -> Option<usize> {
        // Addresses above the lower half are the kernel's.
        if !address.is_multiple_of(WORD) || address < PAGE || address > isize::MAX as usize {
            return None;
        }
        if answers() == COPIES {
            return sys::copy_word(address);
        }
        let page = address & !(PAGE - 1);
        let known = self.pages.get_mut(page / PAGE % KNOWN)?;
        if *known != page {
            if !can_read(address) {
                return None;
            }
            *known = page;
        }
        // SAFETY: the page is readable, and an aligned word does not cross its end.
        Some(unsafe { core::ptr::with_exposed_provenance::<usize>(address).read_volatile() })
    }

    /// The byte at `address`.
    pub(crate) fn byte(&mut self, address: usize) -> Option<u8> {
        let word = self.word(address & !(WORD - 1))?;
        Some((word >> (address % WORD * 8)) as u8)
    }

    /// Words from `address` on, as many as can be read and `out` has room for: their number.
    pub(crate) fn words(&mut self, address: usize, out: &mut [u64]) -> u16 {
        let mut count = 0;
        for (i, place) in out.iter_mut().enumerate() {
            let Some(word) = self.word(address.wrapping_add(i * WORD)) else { break };
            *place = word as u64;
            count += 1;
        }
        count
    }
}
