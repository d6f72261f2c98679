//! Which object is the first that may define a name.
//!
//! To find a definition, the dynamic linker asks one object of the scope after the other. With
//! hundreds of objects that is what takes the time, so this table tells for each hash of a defined
//! name the least number of an object that has it: none before need be asked. Objects are only ever
//! added, which keeps that true; of those that have gone, the caller knows.

use core::ptr;

use crate::elf::Image;
use crate::resolve::for_each_hash;
use crate::sys;

/// Places at first, a power of 2; 16 bytes each name, at most.
const FIRST_ROOM: usize = 1 << 14;

pub(crate) struct Index {
    /// Open addressing: the hash without its lowest bit, which hash tables do not keep, and above
    /// it the object's number and 1. All zeros: free.
    places: *mut u64,
    /// How many, a power of 2; 0: there is no table.
    room: usize,
    used: usize,
    /// There was no memory for it.
    given_up: bool,
}

impl Index {
    pub(crate) const fn new() -> Self {
        Self { places: ptr::null_mut(), room: 0, used: 0, given_up: false }
    }

    /// Whether there is a table. Then every object must be added.
    pub(crate) fn is_open(&self) -> bool {
        self.room > 0
    }

    /// Adds the names that `image`, the object with this number, defines. Without memory for them
    /// there is no table from then on.
    pub(crate) fn add(&mut self, image: &Image, object: u32) {
        let mut fits = !self.given_up;
        for_each_hash(image, |hash| {
            fits = fits && (self.used * 2 < self.room || self.grow());
            if fits {
                self.insert(hash >> 1, object);
            }
        });
        if !fits {
            self.release();
            *self = Self { given_up: true, ..Self::new() };
        }
    }

    /// The first object that may define a name with this GNU hash; 0 if there is no table.
    pub(crate) fn first(&self, gnu_hash: u32) -> Option<u32> {
        if !self.is_open() {
            return Some(0);
        }
        let (_, entry) = self.find(gnu_hash >> 1);
        ((entry >> 32) as u32).checked_sub(1)
    }

    fn insert(&mut self, key: u32, object: u32) {
        let (at, entry) = self.find(key);
        let new = u64::from(object + 1) << 32 | u64::from(key);
        if entry == 0 || new < entry {
            self.used += usize::from(entry == 0);
            // SAFETY: `find` gives a place of the table.
            unsafe { *self.places.add(at) = new };
        }
    }

    /// The place of a key and what is there: 0 if it is in none.
    fn find(&self, key: u32) -> (usize, u64) {
        const MIX: u32 = 0x9e37_79b1;
        let mut at = (key.wrapping_mul(MIX) >> 8) as usize;
        loop {
            at &= self.room - 1;
            // SAFETY: the place is in the table, which always has a free one.
            let entry = unsafe { *self.places.add(at) };
            if entry == 0 || entry as u32 == key {
                return (at, entry);
            }
            at += 1;
        }
    }

    /// Makes a table twice as large.
    fn grow(&mut self) -> bool {
        let room = (self.room * 2).max(FIRST_ROOM);
        let places: *mut u64 = sys::map_anonymous(room * size_of::<u64>()).cast();
        if places.is_null() {
            return false;
        }
        let old = core::mem::replace(self, Self { places, room, ..Self::new() });
        for at in 0..old.room {
            // SAFETY: the place is in the old table.
            let entry = unsafe { *old.places.add(at) };
            if entry != 0 {
                self.insert(entry as u32, (entry >> 32) as u32 - 1);
            }
        }
        old.release();
        true
    }

    fn release(&self) {
        if self.is_open() {
            sys::unmap(self.places.cast(), self.room * size_of::<u64>());
        }
    }
}
