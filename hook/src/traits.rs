//! What is known of each slot's function, for all threads together: by its name, and by what its calls have done.

use core::sync::atomic::{AtomicU8, Ordering};

use chase_format::layout::Node;

use crate::abi::STUBS;
use crate::node::SLOT_MASK;
use crate::sites;
use chase_logic::waits::{Waits, waits_of};

/// All of its calls are timed.
pub(crate) const EVERY_CALL: u8 = 1 << 0;
/// It is a special function: its calls are timed even where others are only counted.
pub(crate) const SPECIAL: u8 = 1 << 1;
/// It waits for other threads: all of its calls are timed once there are several threads.
pub(crate) const LOCK: u8 = 1 << 2;
/// A call of it has called another function.
pub(crate) const HAS_CHILDREN: u8 = 1 << 3;
/// It makes no system calls and waits for nothing.
pub(crate) const PURE: u8 = 1 << 4;
/// All of its calls are timed, and recorded as events.
pub(crate) const CHOSEN: u8 = 1 << 5;
/// None of its calls is recorded; but chase does what a special function asks of it.
pub(crate) const LEFT_OUT: u8 = 1 << 6;

/// What a recording is to have of a function's calls (`CHASE_LIBS`, `CHASE_EXCLUDE`, `CHASE_EVENTS`).
#[derive(Clone, Copy)]
pub(crate) enum Extent {
    /// Nothing.
    Nothing,
    /// Number and times.
    Calls,
    /// An event for each.
    Events,
}

#[unsafe(link_section = ".bss.large")]
static TRAITS: [AtomicU8; STUBS] = [const { AtomicU8::new(0) }; STUBS];

/// Sets the traits of a slot by its import's name, before the slot is used.
pub(crate) fn describe(slot: usize, name: &[u8], is_special: bool, extent: Extent) {
    let by_extent = match extent {
        Extent::Nothing => LEFT_OUT,
        Extent::Calls => 0,
        Extent::Events => CHOSEN | EVERY_CALL,
    };
    let by_kind = if is_special { SPECIAL | EVERY_CALL } else { 0 };
    let by_name = match waits_of(name) {
        Some(Waits::Threads) => LOCK,
        Some(Waits::Anything) => EVERY_CALL,
        Some(Waits::Nothing) => PURE,
        None => 0,
    };
    if let Some(traits) = TRAITS.get(slot) {
        traits.store(by_extent | by_kind | by_name, Ordering::Relaxed);
    }
}

/// Times every call of this node's slot from now on, in all threads: a call did not return, or returned on another
/// thread.
pub(crate) fn time_every_call(node: *const Node) {
    set(node, EVERY_CALL);
}

/// Notes that a call of this node's slot calls another function.
pub(crate) fn note_child(node: *const Node) {
    set(node, HAS_CHILDREN);
}

fn set(node: *const Node, wanted: u8) {
    // SAFETY: nodes live as long as the mapping.
    let slot = sites::import_of(unsafe { (*node).slot } & SLOT_MASK);
    if let Some(traits) = TRAITS.get(slot as usize)
        && traits.load(Ordering::Relaxed) & wanted == 0
    {
        traits.fetch_or(wanted, Ordering::Relaxed);
    }
}

/// Whether a slot, or the import called from a place, has one of the `wanted` traits.
pub(crate) fn has(slot: u32, wanted: u8) -> bool {
    let slot = sites::import_of(slot);
    TRAITS.get(slot as usize).is_none_or(|traits| traits.load(Ordering::Relaxed) & wanted != 0)
}
