//! The entries of an object's GOT: reading them, and storing addresses in them.

use core::ptr;
use core::sync::atomic::{AtomicUsize, Ordering};

use crate::images;
use crate::objects::Object;

/// Returns what an entry of a loaded object's GOT holds.
pub(super) fn read_entry(got: usize) -> usize {
    // SAFETY: the entry is an aligned word of a GOT that is mapped. The dynamic linker may be writing it.
    unsafe { ptr::with_exposed_provenance::<usize>(got).read_volatile() }
}

/// Stores addresses in the entries of an object. Those that are read-only since the object was relocated are writable
/// from the first of them until this is dropped.
pub(super) struct Entries<'a> {
    object: &'a Object,
    are_unprotected: bool,
}

impl<'a> Entries<'a> {
    pub(super) fn new(object: &'a Object) -> Self {
        Self { object, are_unprotected: false }
    }

    /// Stores an address in an entry. Returns false if that can't be made writable.
    pub(super) fn store(&mut self, got: usize, address: usize) -> bool {
        let image = &self.object.image;
        if image.is_relro(got) && !self.are_unprotected {
            self.are_unprotected = images::protect_relro(image, libc::PROT_READ | libc::PROT_WRITE);
            if !self.are_unprotected {
                return false;
            }
        }
        // SAFETY: the entry is an aligned word of the object's GOT; its page is writable, as the dynamic linker writes
        // it too. Other threads may be reading it.
        unsafe { AtomicUsize::from_ptr(ptr::with_exposed_provenance_mut(got)) }
            .store(address, Ordering::Release);
        true
    }
}

impl Drop for Entries<'_> {
    fn drop(&mut self) {
        if self.are_unprotected {
            images::protect_relro(&self.object.image, libc::PROT_READ);
        }
    }
}
