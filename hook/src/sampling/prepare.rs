//! Countdowns for the measurement of what calls cost.

use core::sync::atomic::Ordering;

use chase_format::layout::Node;

use crate::thread::Thread;

/// Readies the countdown of `slot` for the measurement of what a call costs: this many calls are
/// only counted; with 0, all that follow are timed.
pub(crate) fn prepare_counted(thread: &Thread, slot: u32, calls: u32) {
    if let Some(counts) = thread.counts.get() {
        counts.set(slot, calls, false);
    }
}

/// Readies it for calls that are samples, each of itself, credited to `node`. False if there is no
/// room.
pub(crate) fn prepare_samples(thread: &Thread, slot: u32, node: *mut Node) -> bool {
    let Some((counts, state)) = thread.counts.get().and_then(|c| Some((c, c.make_state(slot)?)))
    else {
        return false;
    };
    state.node.store(node, Ordering::Relaxed);
    state.samples.set(0);
    state.block.store(u32::from(!node.is_null()), Ordering::Relaxed);
    state.place.store(1, Ordering::Relaxed);
    counts.set(slot, u32::from(!node.is_null()), false);
    true
}

/// Readies it for calls that get frames and are not timed; with 0, all that follow are. False if there
/// is no room.
pub(crate) fn prepare_framed(thread: &Thread, slot: u32, calls: u32) -> bool {
    let Some((counts, _)) = thread.counts.get().and_then(|c| Some((c, c.make_state(slot)?))) else {
        return false;
    };
    counts.set_framed(slot, calls > 0);
    counts.set(slot, calls, calls > 0);
    true
}
