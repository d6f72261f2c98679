//! Finds the first object that may define a name, and the symbol.
//!
//! To find a definition, the dynamic linker searches one object of the scope after the other, which takes long with
//! hundreds of objects. So this table holds, for each hash of a defined name, the lowest number of an object that has
//! it: those before need not be searched. Mostly it is the only one, too. Objects are only ever added, so this stays
//! true; the caller takes care of those that were unloaded.

use core::marker::PhantomData;
use core::ptr;

use crate::definers::{Definer, Entry};
use crate::elf::Image;
use crate::resolve::for_each_hash;

/// The initial number of entries, a power of 2; each name takes two to four.
const FIRST_ROOM: usize = 1 << 12;

/// Where the table's memory comes from.
pub trait Places {
    /// Returns memory for so many entries, all free; `None` if there is none.
    fn allocate(entries: usize) -> Option<&'static mut [Entry]>;

    /// Takes it back.
    fn free(places: &'static mut [Entry]);
}

/// The table of the names of all objects.
#[derive(Debug)]
pub struct Index<P> {
    /// A hash table with open addressing, of which at most half is used; see [`Entry`]. Its length is a power of 2, or 0:
    /// there is no table.
    places: &'static mut [Entry],
    used: usize,
    /// There was no memory for the table.
    given_up: bool,
    memory: PhantomData<P>,
}

impl<P: Places> Index<P> {
    /// Returns an index without a table.
    #[must_use]
    pub const fn new() -> Self {
        Self { places: &mut [], used: 0, given_up: false, memory: PhantomData }
    }

    /// Whether there is a table. If so, every object must be added.
    #[must_use]
    pub fn is_open(&self) -> bool {
        !self.places.is_empty()
    }

    /// Makes room for `names` more names, which is faster than growing the table as they are added.
    pub fn reserve(&mut self, names: usize) {
        if !self.given_up && (self.used + names) * 2 > self.places.len() {
            self.grow(self.used + names);
        }
    }

    /// Adds the names that `image`, the object with this number, defines. If there is no memory, drops the table for
    /// good.
    pub fn add(&mut self, image: &Image, object: u32) {
        for_each_hash(image, |hash, symbol| self.add_name(hash, symbol, object));
    }

    /// Adds a name with this GNU hash.
    #[inline]
    fn add_name(&mut self, hash: u32, symbol: u32, object: u32) {
        if self.given_up {
            return;
        }
        if self.used * 2 < self.places.len() || self.grow(self.used + 1) {
            self.insert(Entry::new(hash, symbol, object));
        } else {
            P::free(core::mem::take(&mut self.places));
            *self = Self { given_up: true, ..Self::new() };
        }
    }

    /// Returns which objects may define a name with this GNU hash.
    #[inline]
    #[must_use]
    pub fn definer(&self, gnu_hash: u32) -> Definer {
        if !self.is_open() {
            return Definer::From(0);
        }
        self.find(Entry::key_of(gnu_hash)).1.definer()
    }

    /// Returns the address of the first entry that [`definer`](Self::definer) reads.
    #[inline]
    #[must_use]
    pub fn place_of(&self, gnu_hash: u32) -> Option<usize> {
        let place = self.places.get(self.first_place(Entry::key_of(gnu_hash)));
        place.map(|place| ptr::from_ref(place).addr())
    }

    #[inline]
    fn insert(&mut self, new: Entry) {
        let (at, old) = self.find(new.key());
        self.used += usize::from(old == Entry::FREE);
        if let Some(place) = self.places.get_mut(at) {
            *place = old.and(new);
        }
    }

    /// Returns the index of a key's entry, or of the free one where it belongs, and the entry. (The table always has a
    /// free entry.)
    #[inline]
    fn find(&self, key: u32) -> (usize, Entry) {
        let mut at = self.first_place(key);
        while let Some(&entry) = self.places.get(at)
            && entry != Entry::FREE
            && entry.key() != key
        {
            at = (at + 1) & (self.places.len() - 1);
        }
        (at, self.places.get(at).copied().unwrap_or(Entry::FREE))
    }

    /// Returns the index at which the search for a key begins.
    #[inline]
    fn first_place(&self, key: u32) -> usize {
        const MIX: u32 = 0x9e37_79b1;
        (key.wrapping_mul(MIX) >> 8) as usize & self.places.len().wrapping_sub(1)
    }

    /// Replaces the table by one for `names` names; returns false if there is no memory.
    fn grow(&mut self, names: usize) -> bool {
        let room = (names * 2).next_power_of_two().max(FIRST_ROOM);
        let Some(places) = P::allocate(room) else { return false };
        let old = core::mem::replace(&mut self.places, places);
        self.used = 0;
        for &entry in old.iter().filter(|&&entry| entry != Entry::FREE) {
            self.insert(entry);
        }
        if !old.is_empty() {
            P::free(old);
        }
        true
    }
}

impl<P: Places> Default for Index<P> {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use std::boxed::Box;
    use std::collections::HashMap;

    use super::*;

    /// Memory for tables of up to so many entries.
    struct UpTo<const ENTRIES: usize>;

    impl<const ENTRIES: usize> Places for UpTo<ENTRIES> {
        fn allocate(entries: usize) -> Option<&'static mut [Entry]> {
            assert!(entries.is_power_of_two());
            (entries <= ENTRIES).then(|| Box::leak(std::vec![Entry::FREE; entries].into()))
        }

        fn free(places: &'static mut [Entry]) {
            assert!(!places.is_empty());
            // SAFETY: it was leaked by `allocate`.
            drop(unsafe { Box::from_raw(ptr::from_mut(places)) });
        }
    }

    fn free<const ENTRIES: usize>(index: Index<UpTo<ENTRIES>>) {
        UpTo::<ENTRIES>::free(index.places);
    }

    /// Hashes of which some occur several times.
    fn hash_of(number: u32) -> u32 {
        (number % 5_000).wrapping_mul(0x0101_6b2d) ^ (number % 3)
    }

    #[test]
    fn it_knows_what_a_map_knows() {
        let names = if cfg!(miri) { 3_000 } else { 30_000 };
        let mut index = Index::<UpTo<{ 1 << 17 }>>::new();
        let mut expected = HashMap::<u32, Entry>::new();
        for number in 0..names {
            let (hash, object) = (hash_of(number), number / 1_000);
            index.add_name(hash, number + 1, object);
            let entry = expected.entry(Entry::key_of(hash)).or_insert(Entry::FREE);
            *entry = entry.and(Entry::new(hash, number + 1, object));
        }
        assert_eq!(index.used, expected.len());
        for number in 0..names * 2 {
            let hash = hash_of(number) ^ u32::from(number >= names) << 30;
            let entry = expected.get(&Entry::key_of(hash)).copied().unwrap_or(Entry::FREE);
            assert_eq!(index.definer(hash), entry.definer());
        }
        free(index);
    }

    #[test]
    fn it_grows_and_stays_half_empty() {
        let mut index = Index::<UpTo<{ 4 * FIRST_ROOM }>>::new();
        assert!(!index.is_open());
        assert_eq!((index.definer(7), index.place_of(7)), (Definer::From(0), None));
        for number in 0..FIRST_ROOM as u32 + 1 {
            index.add_name(number * 2, 1, number);
            assert!(index.used * 2 <= index.places.len());
        }
        assert_eq!(index.places.len(), 4 * FIRST_ROOM);
        assert_eq!(index.definer(0), Definer::Only(0, 1));
        assert_eq!(index.definer(2 * FIRST_ROOM as u32), Definer::Only(FIRST_ROOM as u32, 1));
        assert_eq!(index.definer(u32::MAX), Definer::NoObject);
        let places = index.places.as_ptr_range();
        let place = index.place_of(8).unwrap();
        assert!((places.start.addr()..places.end.addr()).contains(&place));
        free(index);
    }

    #[test]
    fn what_was_reserved_does_not_grow() {
        let mut index = Index::<UpTo<{ 4 * FIRST_ROOM }>>::new();
        index.reserve(2 * FIRST_ROOM);
        let places = index.places.as_ptr();
        for number in 0..2 * FIRST_ROOM as u32 {
            index.add_name(number * 2, 1, 0);
        }
        assert!(index.places.as_ptr() == places);
        free(index);
    }

    #[test]
    fn without_memory_it_is_given_up_for_good() {
        let mut index = Index::<UpTo<FIRST_ROOM>>::new();
        for number in 0..FIRST_ROOM as u32 {
            index.add_name(number * 2, 1, 3);
        }
        assert!(!index.is_open() && index.given_up);
        index.reserve(1);
        index.add_name(0, 1, 3);
        assert!(!index.is_open());
        assert_eq!((index.definer(0), index.place_of(0)), (Definer::From(0), None));
    }
}
