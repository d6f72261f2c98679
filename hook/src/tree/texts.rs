//! Paths and names of hosts that long calls were passed.
//!
//! A call's frame keeps the address of the text (`arguments.S`). After a call that has taken long, the kernel copies the text,
//! which may be gone by then (another thread may have unmapped it, and may do so at any time), and the call is added to the row
//! of its context that has this text. A filter of system calls may forbid that copy: where there is one, texts are not recorded.

use core::ptr;

use chase_format::layout::{
    ArgumentHead, ChunkKind, Node, PAGE, TEXT_BYTES, TEXT_UNITS, TEXTS, TextRow,
};

use super::{Tree, key};
use crate::arguments;
use crate::node::{SLOT_MASK, node_at, reference};
use crate::recording;
use crate::signals::SignalsBlocked;
use crate::sys;
use chase_logic::tail::Tail;

/// The maximum length of a thread's rows of texts in units; further texts get none.
const MANY_UNITS: usize = 1 << 12;
/// How far a text is looked at.
const LONGEST: usize = 4096;

/// A text that a call was passed, or its end.
pub(crate) struct Text(Tail<TEXT_BYTES>);

impl Text {
    /// Copies the text at `address`; `None` if it is empty or not readable. If it is longer than [`TEXT_BYTES`], keeps only its
    /// end. (Bytes after the first [`LONGEST`] are not read.)
    pub(crate) fn copy(address: usize) -> Option<Self> {
        let mut text = Tail::EMPTY;
        let mut at = address;
        while at.wrapping_sub(address) < LONGEST {
            let mut block = [0; TEXT_BYTES];
            // The next page may not be there.
            let block = block.get_mut(..TEXT_BYTES.min(PAGE - at % PAGE))?;
            if !sys::copy(at, block) {
                return None;
            }
            let end = block.iter().position(|&byte| byte == 0);
            text.push(block.get(..end.unwrap_or(block.len()))?);
            if end.is_some() {
                break;
            }
            at = at.wrapping_add(block.len());
        }
        (text.len > 0).then_some(Self(text))
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
    /// Adds a call of `node`, of `ticks`, that was passed `text`. Returns whether room had to be made.
    ///
    /// # Safety
    /// The node is this thread's, and has texts.
    pub(crate) unsafe fn note_text(&self, node: *mut Node, text: &Text, ticks: u64) -> bool {
        let _signals = SignalsBlocked::new();
        // SAFETY: the caller vouches for the node; its caller is in the mapping.
        let (scope, slot) = unsafe { (node_at((*node).parent_ref), (*node).slot) };
        let Some(entry) = self.with_argument(key(scope, slot)) else { return false };
        // SAFETY: the entry is in the table; rows live as long as the mapping, are this thread's, and no handler comes.
        unsafe {
            let head = (*entry).node.cast::<ArgumentHead>();
            let (mut at, mut count) = ((*head).longer_ref, 0);
            let mut shortest: *mut TextRow = ptr::null_mut();
            while at != 0 {
                let row = node_at(at).cast::<TextRow>();
                if text.is_of(&*row) {
                    add(row, ticks);
                    return false;
                }
                if shortest.is_null() || (*row).ticks < (*shortest).ticks {
                    shortest = row;
                }
                (at, count) = ((*row).next_ref, count + 1);
            }
            let (new, is_room_made) =
                if count < TEXTS { self.take_text_row(node) } else { (ptr::null_mut(), false) };
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
            is_room_made
        }
    }

    /// Returns an empty row for a node, null if there is no room; and whether room had to be made. Signals are blocked.
    fn take_text_row(&self, node: *mut Node) -> (*mut TextRow, bool) {
        // SAFETY: signals are blocked.
        let space = unsafe { &mut *self.texts.get() };
        let mut is_full = false;
        // (Calls whose text gets no row are counted beside the rows.)
        let place = space.take(TEXT_UNITS, MANY_UNITS, |len| {
            is_full = true;
            recording::chunk(ChunkKind::Texts, self.owner.get(), len)
        });
        let Some(place) = place else { return (ptr::null_mut(), is_full) };
        let row = place.cast::<TextRow>();
        // SAFETY: the units are zero and this thread's.
        unsafe { (*row).node_ref = reference(node) };
        space.publish();
        (row, is_full)
    }
}

impl Text {
    fn is_of(&self, row: &TextRow) -> bool {
        let Tail { bytes, len, is_cut } = &self.0;
        usize::from(row.len) == *len
            && (row.is_cut != 0) == *is_cut
            && row.text.get(..*len) == bytes.get(..*len)
    }

    /// Writes the text into a row whose length is 0.
    ///
    /// # Safety
    /// The row is the calling thread's.
    unsafe fn write(&self, row: *mut TextRow) {
        // SAFETY: the caller vouches for the row.
        unsafe {
            (*row).text = self.0.bytes;
            (*row).is_cut = u16::from(self.0.is_cut);
            ptr::write_volatile(&raw mut (*row).len, self.0.len as u16);
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
