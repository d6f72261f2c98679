//! How a fork's child gets its [`Thread`].
//!
//! A program can fork unnoticed: by a system call of its own, or by a function whose address it has. So threads are
//! in memory that the kernel zeroes in a fork's child. There, the call path finds a thread without room for frames,
//! and takes the slow path, which detects the fork. (Calls that are only counted go on until a countdown ends.
//! Nothing else of the parent's is changed before that.)
//!
//! What the child needs of its thread is kept beside the thread's countdowns.

use core::cell::{Cell, UnsafeCell};
use core::mem::MaybeUninit;
use core::ptr;
use core::sync::atomic::Ordering;

use super::{Thread, clear_current, current};
use crate::abi::Segment;
use crate::arch::current_counts;
use crate::counts::{Counts, KEPT, no_counts};
use crate::segments::{lowest_segment, top_of};
use crate::stack::Stack;

/// What is kept of a thread. All zeros is a valid value, for no thread.
#[repr(C)]
struct Kept {
    stack: Cell<Stack>,
    lowest: Cell<*mut Segment>,
    /// A copy of the [`Thread`] itself, made before a fork that was announced.
    has_copy: Cell<bool>,
    is_left_out: Cell<bool>,
    copy: UnsafeCell<MaybeUninit<Thread>>,
}

const _: () = assert!(size_of::<Kept>() <= KEPT && align_of::<Kept>() <= 64);

impl Kept {
    /// Returns what is kept of the thread that has these countdowns.
    fn beside(counts: &Counts) -> &Self {
        // SAFETY: the area is large enough, aligned, and zero at first.
        unsafe { &*counts.kept.get().cast() }
    }

    fn set_copy(&self, thread: Option<&Thread>) {
        self.has_copy.set(false);
        if let Some(thread) = thread {
            // SAFETY: the area is large enough, and only this thread uses it.
            unsafe { ptr::copy_nonoverlapping(thread, self.copy.get().cast(), 1) };
            self.has_copy.set(true);
        }
    }
}

/// Returns the countdowns that the call path uses; `None` if they are the shared ones.
fn own_counts() -> Option<&'static Counts> {
    let counts = current_counts();
    // SAFETY: others are this thread's, never unmapped, and begin with the countdowns.
    (!counts.is_null() && !ptr::eq(counts, no_counts())).then(|| unsafe { &*counts.cast() })
}

/// Returns an upper bound of the calls that this thread has only counted since an unannounced fork. Earlier ones were
/// credited, or are the parent's.
pub(crate) fn uncredited() -> u64 {
    let counts = current().and_then(|thread| thread.counts.get());
    counts.filter(|counts| !Kept::beside(counts).has_copy.get()).map_or(0, Counts::uncredited)
}

/// Keeps a copy of the calling thread, which may fork now.
pub(crate) fn keep_copy() {
    if let Some(thread) = current()
        && let Some(counts) = thread.counts.get()
    {
        Kept::beside(counts).set_copy(Some(thread));
    }
}

/// Discards that copy: the thread has not forked, or this is the parent.
pub(crate) fn discard_copy() {
    if let Some(counts) = current().and_then(|thread| thread.counts.get()) {
        Kept::beside(counts).set_copy(None);
    }
}

/// In a fork's child: restores this thread's [`Thread`] as far as possible. Signals are blocked.
pub(crate) fn restore() {
    let Some(thread) = current().filter(|thread| thread.is_wiped()) else { return };
    let Some(counts) = own_counts().filter(|counts| !Kept::beside(counts).lowest.get().is_null())
    else {
        return clear_current();
    };
    let kept = Kept::beside(counts);
    if kept.has_copy.get() {
        let (to, busy) = (ptr::from_ref(thread).cast_mut(), thread.head.busy.get());
        // SAFETY: the copy is this thread's, and its mutable parts are in cells.
        unsafe { ptr::copy_nonoverlapping(kept.copy.get().cast(), to, 1) };
        thread.head.busy.set(thread.head.busy.get() + busy);
        return;
    }
    thread.stack.set(kept.stack.get());
    thread.counts.set(Some(counts));
    thread.is_left_out.set(kept.is_left_out.get());
    // SAFETY: it is the first of this thread's segments, which live as long as the thread.
    thread.head.top.store(unsafe { top_of(kept.lowest.get()) }, Ordering::Relaxed);
}

impl Thread {
    /// Whether the kernel has zeroed this thread, since this is a fork's child.
    pub(crate) fn is_wiped(&self) -> bool {
        self.head.top.load(Ordering::Relaxed) == 0
    }

    /// Keeps what the child of an unannounced fork will need.
    pub(super) fn expect_fork(&self) {
        if let Some(counts) = self.counts.get() {
            let kept = Kept::beside(counts);
            kept.stack.set(self.stack.get());
            // SAFETY: this thread has a segment.
            kept.lowest.set(unsafe { lowest_segment(self.head.top.load(Ordering::Relaxed)) });
            kept.has_copy.set(false);
            kept.is_left_out.set(self.is_left_out());
            counts.record.set(self.record.get());
        }
    }
}
