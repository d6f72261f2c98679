//! Finds the first object that may define a name, and the symbol.
//!
//! To find a definition, the dynamic linker searches one object of the scope after the other, which takes long with
//! hundreds of objects. So this table holds, for each hash of a defined name, the lowest number of an object that has
//! it: those before need not be searched. Mostly it is the only one, too. Objects are only ever added, so this stays
//! true; the caller takes care of those that were unloaded.

use core::ptr;

use crate::arch;
use crate::sys;
use chase_logic::definers::{Definer, Entry};
use chase_logic::elf::Image;
use chase_logic::resolve::for_each_hash;

/// The initial number of entries, a power of 2; each name takes two to four.
const FIRST_ROOM: usize = 1 << 12;

pub(crate) struct Index {
    /// A hash table with open addressing; see [`Entry`].
    places: *mut Entry,
    /// The number of entries, a power of 2; 0: there is no table.
    room: usize,
    used: usize,
    /// There was no memory for the table.
    given_up: bool,
}

impl Index {
    pub(crate) const fn new() -> Self {
        Self { places: ptr::null_mut(), room: 0, used: 0, given_up: false }
    }

    /// Whether there is a table. If so, every object must be added.
    pub(crate) fn is_open(&self) -> bool {
        self.room > 0
    }

    /// Makes room for `names` more names, which is faster than growing the table as they are added.
    pub(crate) fn reserve(&mut self, names: usize) {
        if !self.given_up && (self.used + names) * 2 > self.room {
            self.grow(self.used + names);
        }
    }

    /// Adds the names that `image`, the object with this number, defines. If there is no memory, drops the table for
    /// good.
    pub(crate) fn add(&mut self, image: &Image, object: u32) {
        let mut fits = !self.given_up;
        for_each_hash(image, |hash, symbol| {
            fits = fits && (self.used * 2 < self.room || self.grow(self.used + 1));
            if fits {
                self.insert(Entry::new(hash, symbol, object));
            }
        });
        if !fits {
            self.release();
            *self = Self { given_up: true, ..Self::new() };
        }
    }

    /// Returns which objects may define a name with this GNU hash.
    pub(crate) fn definer(&self, gnu_hash: u32) -> Definer {
        if !self.is_open() {
            return Definer::From(0);
        }
        self.find(Entry::key_of(gnu_hash)).1.definer()
    }

    /// Prefetches the entry that [`definer`](Self::definer) reads.
    pub(crate) fn prefetch(&self, gnu_hash: u32) {
        if self.is_open() {
            arch::prefetch(
                self.places.wrapping_add(self.first_place(Entry::key_of(gnu_hash))).addr(),
            );
        }
    }

    fn insert(&mut self, new: Entry) {
        let (at, old) = self.find(new.key());
        self.used += usize::from(old == Entry::FREE);
        // SAFETY: `find` returns an index within the table.
        unsafe { *self.places.add(at) = old.and(new) };
    }

    /// Returns the index of a key's entry, or of the free one where it belongs, and the entry.
    fn find(&self, key: u32) -> (usize, Entry) {
        let mut at = self.first_place(key);
        loop {
            // SAFETY: the index is within the table, which always has a free entry.
            let entry = unsafe { *self.places.add(at) };
            if entry == Entry::FREE || entry.key() == key {
                return (at, entry);
            }
            at = (at + 1) & (self.room - 1);
        }
    }

    /// Returns the index at which the search for a key begins.
    fn first_place(&self, key: u32) -> usize {
        const MIX: u32 = 0x9e37_79b1;
        (key.wrapping_mul(MIX) >> 8) as usize & (self.room - 1)
    }

    /// Replaces the table by one for `names` names; returns false if there is no memory.
    fn grow(&mut self, names: usize) -> bool {
        let room = (names * 2).next_power_of_two().max(FIRST_ROOM);
        let places: *mut Entry = sys::map_populated(room * size_of::<Entry>()).cast();
        if places.is_null() {
            return false;
        }
        let old = core::mem::replace(self, Self { places, room, ..Self::new() });
        for at in 0..old.room {
            // SAFETY: the index is within the old table.
            let entry = unsafe { *old.places.add(at) };
            if entry != Entry::FREE {
                self.insert(entry);
            }
        }
        old.release();
        true
    }

    fn release(&self) {
        if self.is_open() {
            sys::unmap(self.places.cast(), self.room * size_of::<Entry>());
        }
    }
}
