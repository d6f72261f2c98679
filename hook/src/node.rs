//! Nodes of the calling-context tree, as stored in the recording.
//!
//! Only its own thread writes to a node, but signal handlers may come between any two instructions. So each addition
//! is a single instruction.

use chase_format::layout::{FRAMED, INHERITED, Node, SAMPLED, Samples, UNIT};

use crate::arch::OwnCounter;
use crate::recording;

/// The bits of [`Node::slot`] that are the slot's number.
pub(crate) const SLOT_MASK: u32 = !(SAMPLED | FRAMED | INHERITED);

/// Returns the `_ref` of a node or page.
pub(crate) fn reference<T>(record: *const T) -> u32 {
    ((record as usize - recording::base() as usize) / UNIT) as u32
}

/// Returns the node of a `_ref`.
pub(crate) fn node_at(reference: u32) -> *mut Node {
    recording::base().wrapping_add(reference as usize * UNIT).cast()
}

/// Returns the sample data behind a node of sampled calls.
///
/// # Safety
/// The node is one of sampled calls.
pub(crate) unsafe fn samples_of(node: *mut Node) -> *mut Samples {
    // SAFETY: the node was allocated together with the data behind it.
    unsafe { node.add(1).cast() }
}

/// Whether a node is one of sampled calls.
///
/// # Safety
/// It is a node.
pub(crate) unsafe fn is_sampled(node: *const Node) -> bool {
    // SAFETY: the caller vouches for the node.
    let slot = unsafe { (*node).slot };
    slot & SAMPLED != 0 && slot & INHERITED == 0
}

/// Whether a node is one of calls that get frames and are not all timed.
///
/// # Safety
/// It is a node.
pub(crate) unsafe fn is_framed(node: *const Node) -> bool {
    // SAFETY: the caller vouches for the node.
    unsafe { is_sampled(node) && (*node).slot & FRAMED != 0 }
}

/// Adds to the calls of a node.
///
/// # Safety
/// The node is one of the calling thread's.
pub(crate) unsafe fn add_calls(node: *mut Node, calls: u64) {
    // SAFETY: the caller vouches for the node.
    unsafe { OwnCounter::at(&raw mut (*node).calls) }.add(calls);
}

/// Counts a call of a node without a duration: it was abandoned, or not timed.
///
/// # Safety
/// The node is one of the calling thread's.
pub(crate) unsafe fn add_unwound(node: *mut Node) {
    // SAFETY: the caller vouches for the node.
    unsafe { OwnCounter::at(&raw mut (*node).unwound) }.add(1);
}

/// Counts a call of a node that is not timed.
///
/// # Safety
/// The node is one of the calling thread's.
pub(crate) unsafe fn add_untimed_call(node: *mut Node) {
    // SAFETY: the caller vouches for the node.
    unsafe {
        add_calls(node, 1);
        add_unwound(node);
    }
}

/// Adds to the time of a node, in ticks.
///
/// # Safety
/// The node is one of the calling thread's.
pub(crate) unsafe fn add_ticks(node: *mut Node, ticks: u64) {
    // SAFETY: the caller vouches for the node.
    unsafe { OwnCounter::at(&raw mut (*node).total_ticks) }.add(ticks);
}

/// Subtracts one call, whose frame has this weight, from the node that it is credited to.
///
/// # Safety
/// The node is one of the calling thread's.
pub(crate) unsafe fn subtract_call(node: *mut Node, weight: u32) {
    // SAFETY: the caller vouches for the node.
    unsafe {
        // A handler may have jumped out before the call was counted.
        (*node).calls = (*node).calls.saturating_sub(1);
        if is_sampled(node) && weight > 0 {
            let begun = &raw mut (*samples_of(node)).begun;
            *begun = (*begun).saturating_sub(1);
        }
    }
}
