//! The data that creators pass to new threads.

use core::ptr;

use chase_format::layout::{OriginRecord, PAGE};

use super::Origin;
use crate::lock::{Fork, Lock};
use crate::pages;

/// The data that a thread's creator passes to it.
#[repr(C)]
pub(crate) struct Start {
    /// (Only the thread itself knows where its stack ends.)
    pub(crate) origin: Origin,
    /// Whether the thread is recorded.
    pub(crate) is_wanted: bool,
    next: *mut Start,
    pub(crate) noted: OriginRecord,
}

/// The free entries.
static FREE: Lock<*mut Start> = Lock::new(ptr::null_mut());

/// Takes a free entry, zeroed or as it was last used; null if there is no memory. Signals are blocked.
pub(crate) fn take_start() -> *mut Start {
    let mut free = FREE.hold();
    // SAFETY: the lock is held; entries of the list are free.
    unsafe {
        if free.is_null() {
            let page = pages::allocate(PAGE).cast::<Start>();
            if page.is_null() {
                return page;
            }
            for i in 0..PAGE / size_of::<Start>() {
                (*page.add(i)).next = *free;
                *free = page.add(i);
            }
        }
        let start = *free;
        *free = (*start).next;
        start
    }
}

/// Gives back an entry of [`take_start`] that is not used any more. Signals are blocked.
pub(crate) fn give_back_start(start: *mut Start) {
    let mut free = FREE.hold();
    // SAFETY: nobody uses the entry.
    unsafe { (*start).next = *free };
    *free = start;
}

/// Handles the lock in a fork.
pub(super) fn fork(moment: Fork) {
    FREE.fork(moment);
}
