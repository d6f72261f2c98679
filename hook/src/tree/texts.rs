//! Paths and names of hosts that long calls were passed.
//!
//! A call's frame keeps the address of the text (`arguments.S`). After a call that has taken long, the text is read, if it
//! is still readable, and the call is added to the row of its context that has this text.

use core::ptr;

use chase_format::layout::{
    ArgumentHead, ChunkKind, Node, PAGE, TEXT_BYTES, TEXT_UNITS, TEXTS, TextRow, UNIT,
};

use super::{Tree, key};
use crate::arguments;
use crate::node::{SLOT_MASK, node_at, reference};
use crate::readable::Reader;
use crate::recording::{self, Lost};
use crate::signals::SignalsBlocked;

/// The maximum length of a thread's rows of texts in units; further texts get none.
const MANY_UNITS: usize = 1 << 12;

/// A text that a call was passed, or its end.
pub(crate) struct Text {
    bytes: [u8; TEXT_BYTES],
    len: usize,
    is_cut: bool,
}

impl Text {
    /// Reads the text at `address`; `None` if it is empty or not readable.
    pub(crate) fn read(address: usize) -> Option<Self> {
        let mut bytes = [0; TEXT_BYTES];
        let (len, is_cut) = Reader::new()?.text(address, &mut bytes)?;
        (len > 0).then_some(Self { bytes, len, is_cut })
    }
}

/// Whether calls of a node have a text that is recorded.
///
/// # Safety
/// It is a node.
pub(crate) unsafe fn has_text(node: *const Node) -> bool {
    // SAFETY: the caller vouches for the node.
    let slot = unsafe { (*node).slot };
    slot & !SLOT_MASK == 0 && arguments::is_text(slot)
}

impl Tree {
    /// Adds a call of `node`, of `ticks`, that was passed `text`.
    ///
    /// # Safety
    /// The node is this thread's, and has texts.
    pub(crate) unsafe fn note_text(&self, node: *mut Node, text: &Text, ticks: u64) {
        let _signals = SignalsBlocked::new();
        // SAFETY: the caller vouches for the node; its caller is in the mapping.
        let (scope, slot) = unsafe { (node_at((*node).parent_ref), (*node).slot) };
        let Some(entry) = self.with_argument(key(scope, slot)) else { return };
        // SAFETY: the entry is in the table; rows live as long as the mapping, are this thread's, and no handler comes.
        unsafe {
            let head = (*entry).node.cast::<ArgumentHead>();
            let (mut at, mut count) = ((*head).longer_ref, 0);
            let mut shortest: *mut TextRow = ptr::null_mut();
            while at != 0 {
                let row = node_at(at).cast::<TextRow>();
                if text.is_of(&*row) {
                    return add(row, ticks);
                }
                if shortest.is_null() || (*row).ticks < (*shortest).ticks {
                    shortest = row;
                }
                (at, count) = ((*row).next_ref, count + 1);
            }
            let new = if count < TEXTS { self.take_text_row(node) } else { ptr::null_mut() };
            if !new.is_null() {
                (*new).next_ref = (*head).longer_ref;
                text.write(new);
                add(new, ticks);
                ptr::write_volatile(&raw mut (*head).longer_ref, reference(new));
            } else if !shortest.is_null() && (*shortest).ticks < ticks {
                (*head).sum += (*shortest).ticks;
                (*head).negative += (*shortest).calls;
                text.replace(shortest);
                add(shortest, ticks);
            } else {
                (*head).sum += ticks;
                (*head).negative += 1;
            }
        }
    }

    /// Returns an empty row for a node; null if there is no room. Signals are blocked.
    fn take_text_row(&self, node: *mut Node) -> *mut TextRow {
        // SAFETY: signals are blocked.
        let space = unsafe { &mut *self.texts.get() };
        let used = self.text_units.get();
        let place = if used + TEXT_UNITS > MANY_UNITS {
            None
        } else {
            space.take(TEXT_UNITS).or_else(|| {
                let bytes = (used * UNIT).next_multiple_of(PAGE).clamp(PAGE, 16 * PAGE);
                space.enter(recording::chunk(ChunkKind::Texts, self.owner.get(), bytes)?);
                space.take(TEXT_UNITS)
            })
        };
        let Some(place) = place else {
            recording::unseen(Lost::ContextWithoutArguments);
            return ptr::null_mut();
        };
        self.text_units.set(used + TEXT_UNITS);
        let row = place.cast::<TextRow>();
        // SAFETY: the units are zero and this thread's.
        unsafe { (*row).node_ref = reference(node) };
        space.publish();
        row
    }
}

impl Text {
    fn is_of(&self, row: &TextRow) -> bool {
        usize::from(row.len) == self.len
            && (row.is_cut != 0) == self.is_cut
            && row.text.get(..self.len) == self.bytes.get(..self.len)
    }

    /// Writes the text into a row whose length is 0.
    ///
    /// # Safety
    /// The row is the calling thread's.
    unsafe fn write(&self, row: *mut TextRow) {
        // SAFETY: the caller vouches for the row.
        unsafe {
            (*row).text = self.bytes;
            (*row).is_cut = u16::from(self.is_cut);
            ptr::write_volatile(&raw mut (*row).len, self.len as u16);
        }
    }

    /// Writes the text into a row of another one.
    ///
    /// # Safety
    /// As for [`Text::write`].
    unsafe fn replace(&self, row: *mut TextRow) {
        // SAFETY: the caller vouches for the row.
        unsafe {
            ptr::write_volatile(&raw mut (*row).len, 0);
            ((*row).calls, (*row).ticks, (*row).max_ticks) = (0, 0, 0);
            self.write(row);
        }
    }
}

/// Adds a call to a row.
///
/// # Safety
/// The row is the calling thread's.
unsafe fn add(row: *mut TextRow, ticks: u64) {
    // SAFETY: the caller vouches for the row.
    unsafe {
        (*row).calls += 1;
        (*row).ticks += ticks;
        (*row).max_ticks = (*row).max_ticks.max(ticks);
    }
}
