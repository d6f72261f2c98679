//! Rows of arguments, and how they are found: in the table, in place of the nodes of slots with a recorded argument.
//!
//! The call path itself records a call's argument if there is a long row (`arguments.S`). This module makes the rows,
//! records the arguments of all other calls, and chooses the calls that are kept with their durations.

use core::ptr;

use chase_format::layout::{
    ARGUMENT_SHORT_PAIRS, ArgumentHead, ArgumentPair, ArgumentRow, ChunkKind, FRAMED, Node,
    SAMPLED, ShortArgumentRow, UNIT, argument_bucket,
};

use super::{Tree, key};
use crate::abi::Entry;
use crate::arch::OwnCounter;
use crate::arguments;
use crate::node::{SLOT_MASK, node_at, reference};
use crate::recording::{self, Lost};
use crate::signals::SignalsBlocked;
use chase_logic::hash::WITH_ARGUMENT;
use chase_logic::kept::place_of;

/// The maximum length of a thread's rows in units; further contexts get none.
const MANY_UNITS: usize = 1 << 14;

/// Whether calls of a slot, given with its bits as a key of the tree, have rows in place of their nodes.
pub(super) fn are_noted(slot: u32) -> bool {
    slot & !SLOT_MASK == 0 && arguments::has(slot)
}

/// Returns the node of an entry, which may have a row in its place; null if the entry is free.
pub(super) fn node_of(entry: &Entry) -> *mut Node {
    if entry.key & WITH_ARGUMENT == 0 {
        return entry.node;
    }
    let head = entry.node.cast::<ArgumentHead>();
    // SAFETY: rows live as long as the mapping.
    node_at(unsafe { (*head).node_ref })
}

/// Where to store the duration of a call once it has returned.
#[derive(Clone, Copy)]
pub(crate) struct Kept(*mut ArgumentPair);

/// In a frame, it is encoded as an offset in the recording, in these units.
const KEPT_UNIT: usize = size_of::<ArgumentPair>();
const _: () =
    assert!(recording::LARGEST / KEPT_UNIT <= u32::MAX as usize && UNIT.is_multiple_of(KEPT_UNIT));

impl Kept {
    /// Encodes it for a frame.
    pub(crate) fn place(self) -> u32 {
        ((self.0.addr() - recording::base().addr()) / KEPT_UNIT) as u32
    }

    /// Decodes it from a frame.
    pub(crate) fn at(place: u32) -> Self {
        Self(recording::base().wrapping_add(place as usize * KEPT_UNIT).cast())
    }

    /// Stores the duration of the call, which has returned.
    pub(crate) fn end(self, ticks: u64) {
        // SAFETY: rows live as long as the mapping, and are the calling thread's.
        unsafe { (*self.0).ticks = ticks.max(1) };
    }
}

impl Tree {
    /// Returns the entry that has a row of arguments under this key.
    pub(super) fn with_argument(&self, key: u64) -> Option<*mut Entry> {
        let entry = self.place(key | WITH_ARGUMENT);
        // SAFETY: `place` stays inside the table.
        (unsafe { (*entry).key } != 0).then_some(entry)
    }

    /// Enters the node of calls of `slot` by this caller, or its row. Returns false if there is no room. Signals are
    /// blocked.
    pub(super) fn insert_node(&self, caller: *const Node, slot: u32, node: *mut Node) -> bool {
        let plain = key(caller, slot);
        if are_noted(slot) {
            // SAFETY: the node is in the mapping.
            let scope = node_at(unsafe { (*node).parent_ref });
            let known = self.with_argument(key(scope, slot));
            // SAFETY: it is in the table.
            let known = known.map(|entry| unsafe { (*entry).node });
            if let Some(row) = known.or_else(|| self.take_row(node, ArgumentHead::SHORT)) {
                return self.insert(plain | WITH_ARGUMENT, row);
            }
        }
        self.insert(plain, node)
    }

    /// Records the argument of a call of `node` in `context`, with its return address at `sp`, that stands for
    /// `weight` calls. If the call is chosen to be kept, returns where its duration goes.
    ///
    /// # Safety
    /// The slot has such an argument; the node is this thread's, and not being changed; the registers are saved below
    /// `sp`.
    pub(crate) unsafe fn note_argument(
        &self,
        node: *mut Node,
        context: *mut Node,
        weight: u32,
        sp: usize,
    ) -> Option<Kept> {
        // SAFETY: the caller vouches for node and registers.
        let (slot, value) =
            unsafe { ((*node).slot, arguments::value((*node).slot & SLOT_MASK, sp)) };
        let row = self.row_of(node, context, slot)?;
        let head = row.cast::<ArgumentHead>();
        // SAFETY: rows are this thread's, and live as long as the mapping; a handler may add to one in between.
        unsafe {
            let is_long = (*head).units == ArgumentHead::LONG;
            let calls = (*head).calls;
            add(&raw mut (*head).calls, 1);
            add(&raw mut (*head).weight, u64::from(weight));
            let Some(value) = value else {
                add(&raw mut (*head).negative, u64::from(weight));
                return None;
            };
            add(&raw mut (*head).sum, value.saturating_mul(u64::from(weight)));
            (*head).max = (*head).max.max(value);
            let pairs = if is_long {
                let row = row.cast::<ArgumentRow>();
                let buckets = (&raw mut (*row).buckets).cast::<u64>();
                add(buckets.add(argument_bucket(value)), u64::from(weight));
                (&raw mut (*row).pairs).cast::<ArgumentPair>()
            } else {
                (&raw mut (*row.cast::<ShortArgumentRow>()).pairs).cast()
            };
            let pair = pairs.add(place(head, calls, is_long)?);
            *pair = ArgumentPair { value, ticks: 0 };
            Some(Kept(pair))
        }
    }

    /// Returns the row of a node, with room for one more call, and makes the caller's entry point to it.
    fn row_of(&self, node: *mut Node, context: *mut Node, slot: u32) -> Option<*mut Node> {
        // SAFETY: nodes live as long as the mapping.
        let scope = node_at(unsafe { (*node).parent_ref });
        let is_sampled = slot & (SAMPLED | FRAMED) != 0;
        let Some(entry) = self.with_argument(key(scope, slot)) else {
            // If a slot is not sampled, its nodes got a row when they were made, or none.
            return if is_sampled { self.add_row_of_samples(node, scope, slot) } else { None };
        };
        // SAFETY: it is in the table; rows live as long as the mapping.
        let row = unsafe { (*entry).node };
        let head = row.cast::<ArgumentHead>();
        // SAFETY: as above.
        let (units, calls) = unsafe { ((*head).units, (*head).calls) };
        let row = if units == ArgumentHead::SHORT && calls >= ARGUMENT_SHORT_PAIRS as u64 {
            self.lengthen(entry)?
        } else {
            row
        };
        if !is_sampled
            && !ptr::eq(scope, context)
            && let Some(entry) = self.with_argument(key(context, slot))
        {
            // SAFETY: the entry is in the table; a probe finds either row.
            unsafe { ptr::write_volatile(&raw mut (*entry).node, row) };
        }
        Some(row)
    }

    #[cold]
    fn add_row_of_samples(
        &self,
        node: *mut Node,
        scope: *mut Node,
        slot: u32,
    ) -> Option<*mut Node> {
        let _signals = SignalsBlocked::new();
        let row = self.take_row(node, ArgumentHead::LONG)?;
        self.insert(key(scope, slot) | WITH_ARGUMENT, row).then_some(row)
    }

    /// Replaces a short row that is full by a long one. If there is no room, the node replaces the row in the table,
    /// and no more arguments are recorded.
    #[cold]
    fn lengthen(&self, entry: *mut Entry) -> Option<*mut Node> {
        let _signals = SignalsBlocked::new();
        // SAFETY: the entry is in the table, and has a row; both rows live as long as the mapping.
        unsafe {
            let short = (*entry).node.cast::<ShortArgumentRow>();
            let node = node_of(&*entry);
            let Some(row) = self.take_row(node, ArgumentHead::LONG) else {
                // The same entry is found without the bit.
                (*entry).node = node;
                ptr::write_volatile(&raw mut (*entry).key, (*entry).key & !WITH_ARGUMENT);
                return None;
            };
            let long = row.cast::<ArgumentRow>();
            let mut head = (*short).head;
            (head.units, head.longer_ref, head.until_kept) = (ArgumentHead::LONG, 0, 0);
            (*long).head = head;
            let buckets = (&raw mut (*long).buckets).cast::<u64>();
            let pairs = (&raw mut (*long).pairs).cast::<ArgumentPair>();
            // Negative values have no pair.
            for (at, pair) in
                (*short).pairs.iter().enumerate().take((head.calls - head.negative) as usize)
            {
                add(buckets.add(argument_bucket(pair.value)), 1);
                pairs.add(at).write(*pair);
            }
            (*short).head.longer_ref = reference(long);
            ptr::write_volatile(&raw mut (*entry).node, row);
            Some(row)
        }
    }

    /// Makes an empty row for a node; returns `None` if there is no room. Signals are blocked.
    fn take_row(&self, node: *mut Node, units: u16) -> Option<*mut Node> {
        // SAFETY: signals are blocked.
        let space = unsafe { &mut *self.rows.get() };
        let more = |len| recording::chunk(ChunkKind::Arguments, self.owner.get(), len);
        let Some(place) = space.take(usize::from(units), MANY_UNITS, more) else {
            recording::unseen(Lost::ContextWithoutArguments);
            return None;
        };
        let head = place.cast::<ArgumentHead>();
        // SAFETY: the units are zero and this thread's.
        unsafe {
            let slot = (*node).slot & SLOT_MASK;
            (*head).node_ref = reference(node);
            (*head).meaning = arguments::meaning(slot);
            (*head).units = units;
            // Of texts, the fast path notes the address, and nothing in the row.
            (*head).until_kept = u32::from(arguments::is_text(slot));
        }
        space.publish();
        Some(place.cast())
    }
}

/// Returns the index at which call number `calls` (from 0) is kept; `None` if it is not.
///
/// # Safety
/// The row is the calling thread's.
unsafe fn place(head: *mut ArgumentHead, calls: u64, is_long: bool) -> Option<usize> {
    // SAFETY: the caller vouches for the row.
    let (node_ref, until_kept, negative) =
        unsafe { ((*head).node_ref, (*head).until_kept, (*head).negative) };
    let number = calls.saturating_sub(negative);
    if !is_long {
        return Some(number as usize).filter(|&number| number < ARGUMENT_SHORT_PAIRS);
    }
    let (place, until_kept) = place_of(number, until_kept, node_ref);
    // SAFETY: as above.
    unsafe { (*head).until_kept = until_kept };
    place
}

/// Adds to a counter of a row, by a single instruction.
///
/// # Safety
/// The row is the calling thread's.
unsafe fn add(counter: *mut u64, more: u64) {
    // SAFETY: the caller vouches for the place.
    unsafe { OwnCounter::at(counter) }.add(more);
}
