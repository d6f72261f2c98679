//! The words of a thread, in its static thread-local storage (`words.S`).

use core::arch::asm;
use core::sync::atomic::{AtomicI16, AtomicPtr, Ordering};

use chase_format::layout::Node;

use super::thread_control_word;
use crate::abi::{
    CONTEXT, Countdown, IS_LATE, NEAR, NEAR_COUNTDOWNS, NEAR_OWNER, THREAD, ThreadHead, WORDS,
    WORDS_AT,
};
use crate::for_tests::WORDS_ARE_FAR;

/// Returns the thread pointer; 0 if it does not point to itself, as the C library's do.
pub(crate) fn own_thread_pointer() -> usize {
    thread_control_word(0)
}

/// Returns this thread's word at `OFFSET`.
fn word<const OFFSET: usize>() -> usize {
    let at = words_offset();
    if at == 0 {
        return no_word::<OFFSET>();
    }
    let word: usize;
    // SAFETY: reads one word of this thread's static TLS, which exists for every thread.
    unsafe {
        asm!(
            "movq %fs:{offset}({1}), {0}",
            out(reg) word,
            in(reg) at,
            offset = const OFFSET,
            options(att_syntax, nostack, readonly, preserves_flags)
        );
    }
    word
}

/// Returns the word at `OFFSET` of the placeholder.
#[cold]
fn no_word<const OFFSET: usize>() -> usize {
    let word: usize;
    // SAFETY: reads a word of ours that nobody changes.
    unsafe {
        asm!(
            "movq {offset} + chase_no_words(%rip), {0}",
            out(reg) word,
            offset = const OFFSET,
            options(att_syntax, nostack, readonly, preserves_flags)
        );
    }
    word
}

/// Finds the offset of the words from the thread pointer. Returns false if it differs between threads: an auditor
/// (`LD_AUDIT`) made the dynamic linker lay out static thread-local storage before it knew of this library, and left
/// too little room. (With the usual relocation for the offset, the program would not start at all then.)
pub(crate) fn find_words() -> bool {
    /// Larger than the static thread-local storage of any thread.
    const MOST: isize = 1 << 24;
    let descriptor: *const [isize; 2];
    // SAFETY: takes the address of two words that the dynamic linker has filled in.
    unsafe {
        asm!("leaq chase_thread@tlsdesc(%rip), %rax", out("rax") descriptor,
            options(att_syntax, nostack, nomem, preserves_flags));
    }
    // SAFETY: as above. The second word is the offset if it is the same in all threads, and an address otherwise.
    let [_, place] = unsafe { descriptor.read_volatile() };
    let is_static = (-MOST..0).contains(&place);
    if is_static {
        WORDS_AT.store(place, Ordering::Relaxed);
    }
    is_static
}

/// Returns this thread's `Thread`, or the placeholder.
pub(crate) fn current_thread() -> *mut ThreadHead {
    word::<THREAD>() as *mut ThreadHead
}

/// Returns the countdowns that this thread's stubs use.
pub(crate) fn current_counts() -> *const Countdown {
    word::<0>() as *const Countdown
}

/// Sets this thread's `Thread`, countdowns and context.
pub(crate) fn set_words(thread: *mut ThreadHead, counts: *const Countdown, context: *const Node) {
    let at = words_offset();
    if at == 0 {
        return;
    }
    // SAFETY: writes words of this thread's static TLS that are ours.
    unsafe {
        asm!(
            "movq {1}, %fs:({0})",
            "movq {2}, %fs:{thread}({0})",
            in(reg) at,
            in(reg) counts,
            in(reg) thread,
            thread = const THREAD,
            options(att_syntax, nostack, preserves_flags)
        );
    }
    set_context(context as usize);
}

/// Returns this thread's context: the address of a node, or 0. The call path takes it for the caller, and the
/// companion reads it. During system calls of chase's own it is a context that has no entry in the table.
pub(crate) fn context() -> usize {
    word::<CONTEXT>()
}

/// Sets this thread's context.
pub(crate) fn set_context(context: usize) {
    let at = words_offset();
    if at == 0 {
        return;
    }
    // SAFETY: as in `set_words`.
    unsafe {
        asm!(
            "movq {1}, %fs:{offset}({0})",
            in(reg) at,
            in(reg) context,
            offset = const CONTEXT,
            options(att_syntax, nostack, preserves_flags)
        );
    }
}

/// Returns the offset of the context from the thread pointer.
pub(crate) fn context_offset() -> isize {
    words_offset() + CONTEXT as isize
}

/// Returns the offset from the thread pointer of the word that points to the `Thread`.
pub(crate) fn thread_offset() -> isize {
    words_offset() + THREAD as isize
}

/// The countdowns of the first slots of a thread, which are beside its words if these are where stubs expect them.
/// They are unmapped when the thread ends.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct NearCountdowns {
    /// Address of the thread's words.
    words: usize,
}

impl NearCountdowns {
    /// Returns those of the calling thread.
    pub(crate) fn own() -> Option<Self> {
        let thread_pointer = own_thread_pointer();
        // (A thread that the C library has not made may have none.)
        (thread_pointer != 0 && words_are_near())
            .then(|| Self { words: thread_pointer.wrapping_add_signed(words_offset()) })
    }

    /// Returns the countdown of `slot`, if that is one of the first.
    ///
    /// # Safety
    /// The thread still exists.
    pub(crate) unsafe fn countdown(self, slot: u32) -> Option<&'static AtomicI16> {
        let place = self.words + NEAR_COUNTDOWNS + slot as usize * size_of::<AtomicI16>();
        // SAFETY: the caller vouches for the thread, of whose words it is one.
        ((slot as usize) < NEAR).then(|| unsafe { &*(place as *const AtomicI16) })
    }

    /// Returns the owner of these countdowns.
    ///
    /// # Safety
    /// The thread still exists.
    pub(crate) unsafe fn owner(self) -> &'static AtomicPtr<Countdown> {
        // SAFETY: as above.
        unsafe { &*((self.words + NEAR_OWNER) as *const AtomicPtr<Countdown>) }
    }

    /// Returns the addresses of the first and the last byte.
    pub(crate) fn ends(self) -> [usize; 2] {
        [self.words, self.words + NEAR_COUNTDOWNS + NEAR * size_of::<AtomicI16>() - 1]
    }
}

/// Whether the library was loaded into a running process.
pub(crate) fn is_late() -> bool {
    IS_LATE.load(Ordering::Relaxed)
}

/// Whether a thread's words are where stubs expect them, with countdowns beside them.
pub(crate) fn words_are_near() -> bool {
    words_offset() == WORDS && !WORDS_ARE_FAR && !is_late()
}

/// Returns the offset of a thread's words from the thread pointer; 0 if there are none.
pub(crate) fn words_offset() -> isize {
    WORDS_AT.load(Ordering::Relaxed)
}
