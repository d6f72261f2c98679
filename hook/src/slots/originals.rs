//! Keeps what GOT entries held before they were patched, for processes that chase will leave.

use core::ptr;
use core::sync::atomic::{AtomicUsize, Ordering};

use super::entries::{Entries, read_entry};
use crate::abi::STUBS;
use crate::objects::Object;
use crate::{stubs, sys};
use chase_logic::description::parts_of;

/// By slot; null if chase won't leave the process.
static ORIGINALS: AtomicUsize = AtomicUsize::new(0);

/// Begins to keep them. Returns false if there is no memory.
pub(crate) fn keep_originals() -> bool {
    if ORIGINALS.load(Ordering::Relaxed) == 0 {
        let memory = sys::map_anonymous(STUBS * size_of::<AtomicUsize>());
        ORIGINALS.store(memory as usize, Ordering::Relaxed);
    }
    ORIGINALS.load(Ordering::Relaxed) != 0
}

fn of_slot(slot: usize) -> Option<&'static AtomicUsize> {
    let table: *const AtomicUsize = ptr::with_exposed_provenance(ORIGINALS.load(Ordering::Relaxed));
    // SAFETY: the table has this many entries, and is never freed.
    (!table.is_null() && slot < STUBS).then(|| unsafe { &*table.add(slot) })
}

/// Stores what the entry of `slot` held.
pub(super) fn keep(slot: usize, original: usize) {
    if let Some(place) = of_slot(slot)
        && !stubs::is_stub(original)
    {
        place.store(original, Ordering::Relaxed);
    }
}

/// Restores the GOT entries of a loaded object; returns how many. The caller holds the lock.
pub(crate) fn restore(object: &Object) -> u64 {
    let Some((record, slots)) = parts_of(object.description()) else { return 0 };
    let mut restored = 0;
    let mut entries = Entries::new(object);
    for (i, slot) in slots.enumerate() {
        let got = object.image.bias().wrapping_add(slot.got_svma as usize);
        let original = of_slot(record.first_slot as usize + i);
        let original = original.map_or(0, |place| place.load(Ordering::Relaxed));
        if original == 0 || !stubs::is_stub(read_entry(got)) {
            continue;
        }
        if !entries.store(got, original) {
            break;
        }
        restored += 1;
    }
    restored
}
