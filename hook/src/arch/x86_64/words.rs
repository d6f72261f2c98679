//! The words of a thread, in its static thread-local storage (`words.S`).

use core::arch::asm;
use core::sync::atomic::{AtomicI16, AtomicPtr, Ordering};

use chase_format::layout::Node;

use super::thread_control_word;
use crate::abi::{
    CONTEXT, Countdown, IS_LATE, NEAR, NEAR_COUNTDOWNS, NEAR_OWNER, THREAD, ThreadHead, WORDS,
};
use crate::for_tests::WORDS_ARE_FAR;

/// This thread's thread pointer; 0 if it does not point to itself, as the C library's do.
pub(crate) fn own_thread_pointer() -> usize {
    thread_control_word(0)
}

/// This thread's word at `OFFSET`.
fn word<const OFFSET: usize>() -> usize {
    let word: usize;
    // SAFETY: reads one word of this thread's static TLS, which exists for every thread.
    unsafe {
        asm!(
            "movq chase_thread@gottpoff(%rip), {0}",
            "movq %fs:{offset}({0}), {0}",
            out(reg) word,
            offset = const OFFSET,
            options(att_syntax, nostack, readonly, preserves_flags)
        );
    }
    word
}

/// This thread's `Thread`, or what stands for it.
pub(crate) fn current_thread() -> *mut ThreadHead {
    word::<THREAD>() as *mut ThreadHead
}

/// The countdowns that this thread's stubs use.
pub(crate) fn current_counts() -> *const Countdown {
    word::<0>() as *const Countdown
}

/// Makes `thread` this thread's, with its countdowns, and `context` its context.
pub(crate) fn set_words(thread: *mut ThreadHead, counts: *const Countdown, context: *const Node) {
    // SAFETY: writes words of this thread's static TLS that are ours.
    unsafe {
        asm!(
            "movq chase_thread@gottpoff(%rip), {0}",
            "movq {1}, %fs:({0})",
            "movq {2}, %fs:{thread}({0})",
            out(reg) _,
            in(reg) counts,
            in(reg) thread,
            thread = const THREAD,
            options(att_syntax, nostack, preserves_flags)
        );
    }
    set_context(context as usize);
}

/// The word that has this thread's context: the address of a node, or 0. The call path takes it for the
/// caller, and the companion looks at it. In a system call of chase's own it is a context that has no
/// entry in the table.
pub(crate) fn context() -> usize {
    word::<CONTEXT>()
}

/// Sets that word.
pub(crate) fn set_context(context: usize) {
    // SAFETY: as in `set_words`.
    unsafe {
        asm!(
            "movq chase_thread@gottpoff(%rip), {0}",
            "movq {1}, %fs:{offset}({0})",
            out(reg) _,
            in(reg) context,
            offset = const CONTEXT,
            options(att_syntax, nostack, preserves_flags)
        );
    }
}

/// Where that word is, from the thread pointer.
pub(crate) fn context_offset() -> isize {
    words_offset() + CONTEXT as isize
}

/// Where the word is, from the thread pointer, that names the thread's `Thread`.
pub(crate) fn thread_offset() -> isize {
    words_offset() + THREAD as isize
}

/// The countdowns of the first slots, which are beside a thread's words, if these are where stubs expect
/// them. They are gone when the thread is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct NearCountdowns {
    /// Address of the thread's words.
    words: usize,
}

impl NearCountdowns {
    /// Those of the calling thread.
    pub(crate) fn own() -> Option<Self> {
        let thread_pointer = own_thread_pointer();
        // (A thread that the C library has not made may have none.)
        (thread_pointer != 0 && words_are_near())
            .then(|| Self { words: thread_pointer.wrapping_add_signed(words_offset()) })
    }

    /// That of `slot`, if it is one of the first.
    ///
    /// # Safety
    /// The thread is there.
    pub(crate) unsafe fn countdown(self, slot: u32) -> Option<&'static AtomicI16> {
        let place = self.words + NEAR_COUNTDOWNS + slot as usize * size_of::<AtomicI16>();
        // SAFETY: the caller vouches for the thread, of whose words it is one.
        ((slot as usize) < NEAR).then(|| unsafe { &*(place as *const AtomicI16) })
    }

    /// Who uses them.
    ///
    /// # Safety
    /// The thread is there.
    pub(crate) unsafe fn owner(self) -> &'static AtomicPtr<Countdown> {
        // SAFETY: as above.
        unsafe { &*((self.words + NEAR_OWNER) as *const AtomicPtr<Countdown>) }
    }

    /// Addresses of the first and of the last byte.
    pub(crate) fn ends(self) -> [usize; 2] {
        [self.words, self.words + NEAR_COUNTDOWNS + NEAR * size_of::<AtomicI16>() - 1]
    }
}

/// Whether the library came into a process that ran already.
pub(crate) fn is_late() -> bool {
    IS_LATE.load(Ordering::Relaxed)
}

/// Whether a thread's words are where stubs expect them, with countdowns beside them.
pub(crate) fn words_are_near() -> bool {
    words_offset() == WORDS && !WORDS_ARE_FAR && !is_late()
}

/// Where the thread's words are, from the thread pointer.
pub(crate) fn words_offset() -> isize {
    let offset: isize;
    // SAFETY: reads a word that the dynamic linker has filled in.
    unsafe {
        asm!("movq chase_thread@gottpoff(%rip), {0}", out(reg) offset,
            options(att_syntax, nostack, readonly, preserves_flags));
    }
    offset
}
