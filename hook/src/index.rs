//! Memory for the table of all names that objects define.

use chase_logic::definers::Entry;
use chase_logic::index::Places;

use crate::sys;

pub(crate) type Index = chase_logic::index::Index<Mapped>;

/// Mappings of their own.
pub(crate) struct Mapped;

impl Places for Mapped {
    fn allocate(entries: usize) -> Option<&'static mut [Entry]> {
        let places: *mut Entry = sys::map_populated(entries * size_of::<Entry>()).cast();
        // SAFETY: the memory is ours, large enough and zeroed, and zeros are free entries.
        (!places.is_null()).then(|| unsafe { core::slice::from_raw_parts_mut(places, entries) })
    }

    fn free(places: &'static mut [Entry]) {
        sys::unmap(places.as_mut_ptr().cast(), size_of_val(places));
    }
}
