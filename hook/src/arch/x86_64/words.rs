//! The words of a thread, in its static thread-local storage (`words.S`).

use core::arch::asm;
use core::sync::atomic::{AtomicI16, AtomicPtr};

use chase_format::layout::Node;

use super::thread_control_word;
use crate::readable::Reader;
use crate::sampling::Counts;
use crate::sys;
use crate::thread::Thread;

/// Where a thread's words are, from the thread pointer, if the executable has little of its own there.
pub(super) const WORDS: isize = -1536;
pub(super) const WORDS_ALIGN: usize = 512;
/// Where the thread and its context are, behind the word that names its countdowns.
pub(super) const THREAD: usize = 8;
pub(super) const CONTEXT: usize = 16;
/// And where the countdowns of the first slots: how many have them there, and who uses them.
pub(super) const NEAR: usize = 512;
const NEAR_OWNER: usize = 24;
pub(super) const NEAR_COUNTDOWNS: usize = 32;

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

/// This thread's [`Thread`]; [`crate::thread::NO_THREAD`] if it has none.
pub(crate) fn current_thread() -> *mut Thread {
    word::<THREAD>() as *mut Thread
}

/// The countdowns that this thread's stubs use.
pub(crate) fn current_counts() -> *const Counts {
    word::<0>() as *const Counts
}

/// Makes `thread` this thread's, with its countdowns, and `context` its context.
pub(crate) fn set_current_thread(thread: *mut Thread, counts: *const Counts, context: *const Node) {
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

/// The words of a thread that is about to have its thread data at `thread_pointer`: its [`Thread`] and its
/// countdowns. `None` if nobody can know.
pub(crate) fn thread_at(thread_pointer: usize) -> Option<(*const Thread, *const Counts)> {
    let words = thread_pointer.wrapping_add_signed(words_offset());
    let mut reader = Reader::new()?;
    let (thread, counts) = (reader.word(words.wrapping_add(THREAD))?, reader.word(words)?);
    Some((thread as *const Thread, counts as *const Counts))
}

/// Makes `thread` that one's, with these countdowns, if the place can be written to.
pub(crate) fn set_thread_at(thread_pointer: usize, thread: *mut Thread, counts: *const Counts) {
    let words = thread_pointer.wrapping_add_signed(words_offset());
    if sys::can_overwrite(words) && sys::can_overwrite(words + CONTEXT) {
        // SAFETY: the words are ours as soon as that thread runs, and nobody else's before.
        unsafe {
            *(words as *mut *const Counts) = counts;
            *((words + THREAD) as *mut *mut Thread) = thread;
            *((words + CONTEXT) as *mut usize) = 0;
        }
    }
}

/// The word that has this thread's context: the address of a node, or 0. The call path takes it for the
/// caller, and the companion looks at it. In a system call of chase's own it is a context that has no
/// entry in the table.
pub(crate) fn context() -> usize {
    word::<CONTEXT>()
}

/// Sets that word.
pub(crate) fn set_context(context: usize) {
    // SAFETY: as in `set_current_thread`.
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
    pub(crate) unsafe fn of(self, slot: u32) -> Option<&'static AtomicI16> {
        let place = self.words + NEAR_COUNTDOWNS + slot as usize * size_of::<AtomicI16>();
        // SAFETY: the caller vouches for the thread, of whose words it is one.
        ((slot as usize) < NEAR).then(|| unsafe { &*(place as *const AtomicI16) })
    }

    /// Who uses them.
    ///
    /// # Safety
    /// The thread is there.
    pub(crate) unsafe fn owner(self) -> &'static AtomicPtr<Counts> {
        // SAFETY: as above.
        unsafe { &*((self.words + NEAR_OWNER) as *const AtomicPtr<Counts>) }
    }

    /// Addresses of the first and of the last byte.
    pub(crate) fn ends(self) -> [usize; 2] {
        [self.words, self.words + NEAR_COUNTDOWNS + NEAR * size_of::<AtomicI16>() - 1]
    }
}

/// Whether a thread's words are where stubs expect them.
pub(super) fn words_are_near() -> bool {
    words_offset() == WORDS && !cfg!(feature = "far")
}

/// Where the thread's words are, from the thread pointer.
fn words_offset() -> isize {
    let offset: isize;
    // SAFETY: reads a word that the dynamic linker has filled in.
    unsafe {
        asm!("movq chase_thread@gottpoff(%rip), {0}", out(reg) offset,
            options(att_syntax, nostack, readonly, preserves_flags));
    }
    offset
}
