//! What is known of each slot's function, for all threads together: by its name, and by what its calls have done.

use core::sync::atomic::{AtomicU8, Ordering};

use chase_format::layout::Node;

use crate::abi::STUBS;
use crate::node::SLOT_MASK;
use crate::sites;
use chase_logic::traits::{EVERY_CALL, Extent, HAS_CHILDREN, traits_of};

#[unsafe(link_section = ".bss.large")]
static TRAITS: [AtomicU8; STUBS] = [const { AtomicU8::new(0) }; STUBS];

/// Sets the traits of a slot by its import's name, before the slot is used.
pub(crate) fn describe(slot: usize, name: &[u8], is_special: bool, extent: Extent) {
    if let Some(traits) = TRAITS.get(slot) {
        traits.store(traits_of(name, is_special, extent), Ordering::Relaxed);
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
