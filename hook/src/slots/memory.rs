//! Memory for an object's description under construction, with the list of what is to be patched behind it.

use core::mem::MaybeUninit;

use chase_format::layout::PAGE;

use super::imports::Import;
use crate::sys;
use chase_logic::description::Size;

pub(super) struct Memory {
    at: *mut u8,
    /// The bytes of the description.
    bytes: usize,
    /// The number of imports that have room behind it.
    imports: usize,
}

impl Memory {
    /// Returns `None` if there is none.
    pub(super) fn map(size: &Size) -> Option<Self> {
        let bytes = size.bytes().next_multiple_of(align_of::<Import>());
        let mut memory = Self { at: core::ptr::null_mut(), bytes, imports: size.slots };
        memory.at = sys::map_populated(memory.len());
        (!memory.at.is_null()).then_some(memory)
    }

    fn len(&self) -> usize {
        self.bytes + self.imports * size_of::<Import>()
    }

    /// Returns the memory for the description, and an empty list.
    pub(super) fn parts(&mut self) -> (&mut [u8], Patches<'_>) {
        // SAFETY: the memory is ours, and both fit into it, one behind the other.
        unsafe {
            let places = self.at.add(self.bytes).cast();
            (
                core::slice::from_raw_parts_mut(self.at, self.bytes),
                Patches { places: core::slice::from_raw_parts_mut(places, self.imports), count: 0 },
            )
        }
    }

    /// Keeps the pages of the first `len` bytes, and frees the others.
    pub(super) fn keep(self, len: usize) {
        let kept = len.next_multiple_of(PAGE);
        if kept < self.len() {
            sys::unmap(self.at.wrapping_add(kept), self.len() - kept);
        }
    }
}

/// The imports whose GOT entries are to be patched, by slot.
pub(super) struct Patches<'m> {
    places: &'m mut [MaybeUninit<Import>],
    count: usize,
}

impl Patches<'_> {
    pub(super) fn push(&mut self, import: Import) {
        if let Some(place) = self.places.get_mut(self.count) {
            place.write(import);
            self.count += 1;
        }
    }

    pub(super) fn clear(&mut self) {
        self.count = 0;
    }

    pub(super) fn all(&self) -> &[Import] {
        // SAFETY: the first `count` places were written.
        unsafe { core::slice::from_raw_parts(self.places.as_ptr().cast(), self.count) }
    }
}
