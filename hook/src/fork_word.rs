//! Tells whether this memory belongs to the process that owns the recording, or to a fork's child.

use core::ptr;
use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

use chase_format::layout::PAGE;

use crate::sys;

/// A word that the kernel clears in a fork's child, but not in a child that shares our memory.
static WORD: AtomicPtr<AtomicU32> = AtomicPtr::new(ptr::null_mut());
/// Its values: in a fork's child, while one of the child's threads handles the fork, and afterwards.
const INHERITED: u32 = 0;
const BEING_HANDLED: u32 = 1;
const OURS: u32 = 2;

/// Returns that word; `None` if the kernel can't clear it.
fn wiped_word() -> Option<&'static AtomicU32> {
    let word = WORD.load(Ordering::Relaxed);
    // SAFETY: the word is in a page of ours, which stays.
    (!word.is_null()).then(|| unsafe { &*word })
}

/// Marks this memory as that of the process that the recording belongs to.
pub(crate) fn claim() {
    if wiped_word().is_none() {
        let page = sys::map_anonymous(PAGE);
        if page.is_null() || sys::advise(page, PAGE, libc::MADV_WIPEONFORK).is_err() {
            return;
        }
        WORD.store(page.cast(), Ordering::Relaxed);
    }
    if let Some(word) = wiped_word() {
        word.store(OURS, Ordering::Release);
    }
}

/// Whether forks can be detected.
pub(crate) fn can_detect() -> bool {
    wiped_word().is_some()
}

/// Whether this is the memory of the process that writes the recording: false in a fork's child whose fork was not
/// handled yet.
pub(crate) fn is_ours() -> bool {
    wiped_word().is_none_or(|word| word.load(Ordering::Acquire) == OURS)
}

/// In a fork's child: whether the caller has to handle the fork. If another thread is doing that, waits for it and
/// returns false.
pub(crate) fn begin_handling() -> bool {
    let Some(word) = wiped_word() else { return false };
    loop {
        let relaxed = Ordering::Relaxed;
        match word.compare_exchange(INHERITED, BEING_HANDLED, relaxed, relaxed) {
            Ok(_) => return true,
            Err(BEING_HANDLED) => sys::pause_ms(1),
            Err(_) => return false,
        }
    }
}
