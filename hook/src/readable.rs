//! Reads memory of the application that may not be mapped.
//!
//! A word that looks like an address may be a number. So the kernel is asked first whether the address can be read,
//! by a system call that only copies from there: `rt_sigprocmask` with an invalid first argument, which fails with
//! either of two errors. It is among the system calls that the hook makes anyway, so sandboxes allow it.
//! (`process_vm_readv` is meant for this, but sandboxes may forbid it, or kill for it.)
//!
//! Valgrind reports both that call and the read as errors of the program. Where it runs the program, which can be
//! detected, words are read by `process_vm_readv`, which it does not report.
//!
//! Another thread may unmap the page between the question and the read. But only memory that the application is just
//! passing on is read, so it would break the application as well.

use core::sync::atomic::{AtomicU32, Ordering};

use chase_format::layout::PAGE;

use crate::{maps, sys};
use chase_logic::memory::Memory;
use chase_logic::proc::holds;

const WORD: usize = size_of::<usize>();
/// How many readable pages are remembered, each at an index given by its address.
const KNOWN: usize = 64;

/// How to find out what can be read: not known yet; by the kernel's answers; not at all; by copying words.
static ANSWERS: AtomicU32 = AtomicU32::new(UNTESTED);
const UNTESTED: u32 = 0;
const RIGHT: u32 = 1;
const WRONG: u32 = 2;
const COPIES: u32 = 3;

/// Returns how to find out what can be read.
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

/// Whether valgrind runs the program: it recognises this instruction sequence, which does nothing elsewhere.
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

/// Whether the eight bytes at `address`, which is aligned, can be read. False if that can't be found out.
pub(crate) fn can_read(address: usize) -> bool {
    match answers() {
        RIGHT => sys::can_read(address),
        COPIES => sys::copy_word(address).is_some(),
        _ => false,
    }
}

/// The same; where the kernel's answers can't be used, looks it up in `/proc/self/maps`, which takes long.
pub(crate) fn is_mapped(address: usize) -> bool {
    match answers() {
        WRONG => maps::any_line(c"/proc/self/maps", |line| holds(line, address)),
        _ => can_read(address),
    }
}

/// Reads words, and remembers which pages are readable. Must be short-lived, since pages may be unmapped.
pub(crate) struct Reader {
    pages: [usize; KNOWN],
}

impl Reader {
    /// Returns `None` if it can't be found out what is readable.
    pub(crate) fn new() -> Option<Self> {
        (answers() != WRONG).then_some(Self { pages: [0; KNOWN] })
    }

    /// Reads words from `address` on, as far as they are readable and `out` has room; returns their number.
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

impl Memory for Reader {
    fn word(&mut self, address: usize) -> Option<usize> {
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
}
