//! Keeps what GOT entries held before they were patched, for processes that chase will leave.

use core::ptr;
use core::sync::atomic::{AtomicUsize, Ordering};

use chase_format::layout::{ObjectRecord, Segment, SlotRecord};

use crate::abi::STUBS;
use crate::objects::Object;
use crate::{stubs, sys};

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
    let (description, _) = object.description;
    if description == 0 {
        return 0;
    }
    // SAFETY: descriptions are never freed while they are referred to, and begin with a record, segments and slots.
    let (record, slots) = unsafe {
        let record = &*(description as *const ObjectRecord);
        let slots = description
            + size_of::<ObjectRecord>()
            + record.segment_count as usize * size_of::<Segment>();
        (
            record,
            core::slice::from_raw_parts(slots as *const SlotRecord, record.slot_count as usize),
        )
    };
    let mut restored = 0;
    let mut unprotected = false;
    for (i, slot) in slots.iter().enumerate() {
        let got = object.image.bias.wrapping_add(slot.got_svma as usize);
        let original = of_slot(record.first_slot as usize + i);
        let original = original.map_or(0, |place| place.load(Ordering::Relaxed));
        let entry: *mut usize = ptr::with_exposed_provenance_mut(got);
        // SAFETY: the object is in the dynamic linker's list, so its GOT is mapped.
        let is_ours = stubs::is_stub(unsafe { entry.read_volatile() });
        if original == 0 || !is_ours {
            continue;
        }
        if object.image.is_relro(got) && !unprotected {
            unprotected = object.image.protect_relro(libc::PROT_READ | libc::PROT_WRITE);
            if !unprotected {
                break;
            }
        }
        // SAFETY: as where it was patched.
        unsafe { AtomicUsize::from_ptr(entry) }.store(original, Ordering::Release);
        restored += 1;
    }
    if unprotected {
        object.image.protect_relro(libc::PROT_READ);
    }
    restored
}
