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

use super::{Thread, current, have_none};
use crate::abi::Segment;
use crate::arch::current_counts;
use crate::counts::{Counts, KEPT, no_counts};
use crate::segments::{lowest_segment, top_of};
use crate::stack::Stack;

/// What is kept of a thread. All-zero is a valid one, of no thread.
#[repr(C)]
struct Kept {
    stack: Cell<Stack>,
    lowest: Cell<*mut Segment>,
    /// The whole of it, before a fork that was seen coming.
    has_copy: Cell<bool>,
    copy: UnsafeCell<MaybeUninit<Thread>>,
}

const _: () = assert!(size_of::<Kept>() <= KEPT && align_of::<Kept>() <= 64);

impl Kept {
    /// Of the thread that has these countdowns.
    fn beside(counts: &Counts) -> &Self {
        // SAFETY: the place is large enough, aligned, and zero at first.
        unsafe { &*counts.kept.get().cast() }
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
    // SAFETY: others are this thread's, mapped for good, and begin with the countdowns.
    (!counts.is_null() && !ptr::eq(counts, no_counts())).then(|| unsafe { &*counts.cast() })
}

/// What this thread may have called, and only counted, since a fork that nobody saw coming: before others, all was
/// credited or is the parent's.
pub(crate) fn uncredited() -> u64 {
    let counts = current().and_then(|thread| thread.counts.get());
    counts.filter(|counts| !Kept::beside(counts).has_copy.get()).map_or(0, Counts::uncredited)
}

/// The calling thread may fork now.
pub(crate) fn keep() {
    if let Some(thread) = current()
        && let Some(counts) = thread.counts.get()
    {
        Kept::beside(counts).set_copy(Some(thread));
    }
}

/// It has not, or this is the parent.
pub(crate) fn keep_no_more() {
    if let Some(counts) = current().and_then(|thread| thread.counts.get()) {
        Kept::beside(counts).set_copy(None);
    }
}

/// In a fork's child: makes this thread's [`Thread`] what it was, as far as that is known. Signals are blocked.
pub(crate) fn restore() {
    let Some(thread) = current().filter(|thread| thread.is_wiped()) else { return };
    let Some(counts) = own_counts().filter(|counts| !Kept::beside(counts).lowest.get().is_null())
    else {
        return have_none();
    };
    let kept = Kept::beside(counts);
    if kept.has_copy.get() {
        let (to, busy) = (ptr::from_ref(thread).cast_mut(), thread.head.busy.get());
        // SAFETY: the copy is this thread's, and all of it is in cells.
        unsafe { ptr::copy_nonoverlapping(kept.copy.get().cast(), to, 1) };
        thread.head.busy.set(thread.head.busy.get() + busy);
        return;
    }
    thread.stack.set(kept.stack.get());
    thread.counts.set(Some(counts));
    // SAFETY: it is the first of this thread's segments, which live as long as the thread.
    thread.head.top.store(unsafe { top_of(kept.lowest.get()) }, Ordering::Relaxed);
}

impl Thread {
    /// Whether this is a fork's child, and the kernel has zeroed it.
    pub(crate) fn is_wiped(&self) -> bool {
        self.head.top.load(Ordering::Relaxed) == 0
    }

    /// Notes what the child of a fork that nobody sees coming will need.
    pub(super) fn expect_fork(&self) {
        if let Some(counts) = self.counts.get() {
            let kept = Kept::beside(counts);
            kept.stack.set(self.stack.get());
            // SAFETY: this thread has a segment.
            kept.lowest.set(unsafe { lowest_segment(self.head.top.load(Ordering::Relaxed)) });
            kept.has_copy.set(false);
            counts.record.set(self.record.get());
        }
    }
}
