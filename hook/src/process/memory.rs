//! Whose memory this is: the process's that the recording belongs to, or a fork's child's.

use core::ptr;
use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

use chase_format::layout::PAGE;

use crate::sys;

/// A word that the kernel clears in a fork's child, but not in one that shares our memory.
static MEMORY_IS_OURS: AtomicPtr<AtomicU32> = AtomicPtr::new(ptr::null_mut());
/// What it is in a fork's child, while one of its threads sees to that, and then.
const INHERITED: u32 = 0;
const BEING_PARTED: u32 = 1;
const OURS: u32 = 2;

/// That word, where the kernel can do that.
fn memory_word() -> Option<&'static AtomicU32> {
    let word = MEMORY_IS_OURS.load(Ordering::Relaxed);
    // SAFETY: the word is in a page of ours, which stays.
    (!word.is_null()).then(|| unsafe { &*word })
}

/// Marks this memory as that of the process that the recording belongs to.
pub(super) fn claim_memory() {
    if memory_word().is_none() {
        let page = sys::map_anonymous(PAGE);
        if page.is_null() || sys::advise(page, PAGE, libc::MADV_WIPEONFORK).is_err() {
            return;
        }
        MEMORY_IS_OURS.store(page.cast(), Ordering::Relaxed);
    }
    if let Some(word) = memory_word() {
        word.store(OURS, Ordering::Release);
    }
}

/// Whether it is known which memory is whose.
pub(crate) fn knows_its_memory() -> bool {
    memory_word().is_some()
}

/// Whether this is the memory that the recording is written from: false in a fork's child that has
/// not been noticed yet.
pub(crate) fn memory_is_ours() -> bool {
    memory_word().is_none_or(|word| word.load(Ordering::Acquire) == OURS)
}

/// In a fork's child: whether nobody has parted this memory from the parent's yet, or is about to. Waits for
/// another thread that is.
pub(super) fn is_to_be_parted() -> bool {
    let Some(word) = memory_word() else { return false };
    loop {
        let relaxed = Ordering::Relaxed;
        match word.compare_exchange(INHERITED, BEING_PARTED, relaxed, relaxed) {
            Ok(_) => return true,
            Err(BEING_PARTED) => sys::pause_ms(1),
            Err(_) => return false,
        }
    }
}
