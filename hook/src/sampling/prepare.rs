//! Sets countdowns for measuring what calls cost.

use core::sync::atomic::Ordering;

use chase_format::layout::Node;

use crate::thread::Thread;

/// Makes the next `calls` calls of `slot` only be counted; with 0, all that follow are timed.
pub(crate) fn prepare_counted(thread: &Thread, slot: u32, calls: u32) {
    if let Some(counts) = thread.counts.get() {
        counts.set_until_sample(slot, calls, false);
    }
}

/// Makes every call of `slot` a sample that stands for itself, credited to `node`; null ends that. Returns false if
/// there is no room.
pub(crate) fn prepare_samples(thread: &Thread, slot: u32, node: *mut Node) -> bool {
    let Some((counts, state)) = thread.counts.get().and_then(|c| Some((c, c.make_state(slot)?)))
    else {
        return false;
    };
    state.node.store(node, Ordering::Relaxed);
    state.samples.set(0);
    state.block.store(u32::from(!node.is_null()), Ordering::Relaxed);
    state.place.store(1, Ordering::Relaxed);
    counts.set_until_sample(slot, u32::from(!node.is_null()), false);
    true
}

/// Makes the next `calls` calls of `slot` get frames without being timed; with 0, all that follow are timed. Returns
/// false if there is no room.
pub(crate) fn prepare_framed(thread: &Thread, slot: u32, calls: u32) -> bool {
    let Some((counts, _)) = thread.counts.get().and_then(|c| Some((c, c.make_state(slot)?))) else {
        return false;
    };
    counts.set_framed(slot, calls > 0);
    counts.set_until_sample(slot, calls, calls > 0);
    true
}
