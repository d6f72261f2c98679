//! How a fork's child comes by its [`Thread`].
//!
//! A program can fork without telling anybody: by a system call of its own, or by a function that it has the
//! address of. So threads are in memory that the kernel zeroes in a fork's child. There the call path finds a
//! thread without room for frames, and takes the slow path, which finds out. (What is only counted goes on until
//! a countdown is at its end. Nothing else of the parent's is changed before that.)
//!
//! What the child needs of its thread is kept beside the thread's countdowns.

use core::cell::{Cell, UnsafeCell};
use core::mem::MaybeUninit;
use core::ptr;
use core::sync::atomic::Ordering;

use chase_format::layout::ThreadRecord;

use super::{Thread, current, known, no_thread};
use crate::arch::{current_counts, current_thread, set_current_thread};
use crate::frames::{Segment, top_of};
use crate::sampling::{Counts, no_counts};
use crate::stack::Stack;

/// What is kept of a thread. All-zero is a valid one, of no thread.
#[repr(C)]
pub(crate) struct Kept {
    stack: Cell<Stack>,
    lowest: Cell<*mut Segment>,
    record: Cell<*mut ThreadRecord>,
    /// The whole of it, before a fork that was seen coming.
    has_copy: Cell<bool>,
    copy: UnsafeCell<MaybeUninit<Thread>>,
}

impl Kept {
    /// These are of a thread that has gone without a word, and its countdowns with it.
    pub(crate) fn tell_untold(&self) {
        let record = self.record.get();
        if !record.is_null() {
            // SAFETY: it is in the mapping, and the thread does not write it any more.
            unsafe { (*record).untold = 1 };
        }
    }

    /// The thread has credited all.
    pub(crate) fn forget_record(&self) {
        self.record.set(ptr::null_mut());
    }

    /// In a fork's child: whether the fork was seen coming.
    pub(crate) fn was_copied(&self) -> bool {
        self.has_copy.get()
    }

    fn set_copy(&self, of: Option<&Thread>) {
        self.has_copy.set(false);
        if let Some(thread) = of {
            // SAFETY: the place is as large, and only this thread uses it.
            unsafe { ptr::copy_nonoverlapping(thread, self.copy.get().cast(), 1) };
            self.has_copy.set(true);
        }
    }
}

/// The countdowns that the call path uses; `None` if they are nobody's.
fn own_counts() -> Option<&'static Counts> {
    let counts = current_counts();
    // SAFETY: others are this thread's, and mapped for good.
    (!counts.is_null() && !ptr::eq(counts, no_counts())).then(|| unsafe { &*counts })
}

/// The calling thread may fork now.
pub(crate) fn keep() {
    if let Some(thread) = current()
        && let Some(counts) = thread.counts.get()
    {
        counts.kept.set_copy(Some(thread));
    }
}

/// It has not, or this is the parent.
pub(crate) fn keep_no_more() {
    if let Some(counts) = current().and_then(|thread| thread.counts.get()) {
        counts.kept.set_copy(None);
    }
}

/// In a fork's child: makes this thread's [`Thread`] what it was, as far as that is known. Signals are blocked.
pub(crate) fn restore() {
    let Some(thread) = known(current_thread()).filter(|thread| thread.is_wiped()) else { return };
    let Some(counts) = own_counts().filter(|counts| !counts.kept.lowest.get().is_null()) else {
        return set_current_thread(no_thread(), no_counts(), ptr::null());
    };
    let kept = &counts.kept;
    if kept.has_copy.get() {
        let (to, busy) = (ptr::from_ref(thread).cast_mut(), thread.busy.get());
        // SAFETY: the copy is this thread's, and all of it is in cells.
        unsafe { ptr::copy_nonoverlapping(kept.copy.get().cast(), to, 1) };
        thread.busy.set(thread.busy.get() + busy);
        return;
    }
    thread.stack.set(kept.stack.get());
    thread.counts.set(Some(counts));
    // SAFETY: it is the first of this thread's segments, which live as long as the thread.
    thread.top.store(unsafe { top_of(kept.lowest.get()) }, Ordering::Relaxed);
}

impl Thread {
    /// Whether this is a fork's child, and the kernel has zeroed it.
    pub(crate) fn is_wiped(&self) -> bool {
        self.top.load(Ordering::Relaxed) == 0
    }

    /// Notes what the child of a fork that nobody sees coming will need.
    pub(super) fn expect_fork(&self) {
        if let Some(counts) = self.counts.get() {
            counts.kept.stack.set(self.stack.get());
            counts.kept.lowest.set(self.lowest_segment());
            counts.kept.has_copy.set(false);
            counts.kept.record.set(self.record.get());
        }
    }
}
