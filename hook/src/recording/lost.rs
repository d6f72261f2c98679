//! Counters of what could not be recorded.

use core::mem::offset_of;
use core::sync::atomic::{AtomicU64, Ordering};

use chase_format::layout::{Header, Unseen};

use super::{base, is_open};

/// Something that could not be recorded, by the offset of its counter in [`Unseen`].
#[derive(Clone, Copy)]
#[repr(usize)]
pub(crate) enum Lost {
    CallWithoutThread = offset_of!(Unseen, calls_without_thread),
    CallWithoutSpace = offset_of!(Unseen, calls_without_space),
    CallTooDeep = offset_of!(Unseen, calls_too_deep),
    Thread = offset_of!(Unseen, threads),
    SlotWithoutStub = offset_of!(Unseen, slots_without_stub),
    Object = offset_of!(Unseen, objects),
    LateLoad = offset_of!(Unseen, late_loads),
    ContextUnderRoot = offset_of!(Unseen, contexts_under_root),
    StackSliced = offset_of!(Unseen, stacks_sliced),
    CallSinceFork = offset_of!(Unseen, calls_since_fork),
    ContextWithoutArguments = offset_of!(Unseen, contexts_without_arguments),
    Event = offset_of!(Unseen, events_without_space),
    EndedEvent = offset_of!(Unseen, events_of_ended),
    LeftOut = offset_of!(Unseen, threads_left_out),
    Fork = offset_of!(Unseen, forks),
}

/// Counts something that could not be recorded.
pub(crate) fn unseen(what: Lost) {
    add_unseen(what, 1);
}

/// Counts several things that could not be recorded.
pub(crate) fn add_unseen(what: Lost, count: u64) {
    if is_open() {
        counter(what).fetch_add(count, Ordering::Relaxed);
    }
}

/// Returns how many of these could not be recorded so far, in an open recording.
pub(crate) fn times_unseen(what: Lost) -> u64 {
    counter(what).load(Ordering::Relaxed)
}

fn counter(what: Lost) -> &'static AtomicU64 {
    let counter = base().wrapping_add(offset_of!(Header, unseen) + what as usize).cast();
    // SAFETY: it is an aligned word of the header, to which others may be adding.
    unsafe { AtomicU64::from_ptr(counter) }
}
