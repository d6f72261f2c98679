//! Which object may define a name: an entry of the table of all names that objects define.

/// The maximum number of objects.
pub const OBJECTS: usize = 4096;

/// All zeros: the entry is free. From the lowest bit:
///
/// | bits | |
/// | --- | --- |
/// | 31 | the hash without its lowest bit, which the objects' hash tables do not store |
/// | 20 | number of the symbol; the highest number if several have this hash, or if the number is larger |
/// | 12 | number of the object |
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct Entry(u64);

const KEY_BITS: u32 = 31;
const SYMBOL_BITS: u32 = 20;
const SEVERAL: u32 = (1 << SYMBOL_BITS) - 1;
const _: () = assert!(OBJECTS <= 1 << (u64::BITS - KEY_BITS - SYMBOL_BITS));

/// Which objects may define a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Definer {
    /// No object.
    NoObject,
    /// This object, by this symbol, and no other object.
    Only(u32, u32),
    /// This object and those with higher numbers.
    From(u32),
}

impl Entry {
    /// An entry without a name.
    pub const FREE: Self = Self(0);

    /// The entry of a name with this hash that `object` defines by `symbol`. (Its number is not 0: symbol 0 is in no hash table.)
    #[inline]
    #[must_use]
    pub fn new(gnu_hash: u32, symbol: u32, object: u32) -> Self {
        Self::with_key(Self::key_of(gnu_hash), symbol.min(SEVERAL), object)
    }

    fn with_key(key: u32, symbol: u32, object: u32) -> Self {
        let (symbol, object) = (u64::from(symbol), u64::from(object));
        Self(u64::from(key) | symbol << KEY_BITS | object << (KEY_BITS + SYMBOL_BITS))
    }

    /// Returns the key of names with this hash.
    #[inline]
    #[must_use]
    pub fn key_of(gnu_hash: u32) -> u32 {
        gnu_hash >> 1
    }

    /// Returns the key by which the entry is found.
    #[inline]
    #[must_use]
    pub fn key(self) -> u32 {
        self.0 as u32 & (u32::MAX >> 1)
    }

    fn symbol(self) -> u32 {
        (self.0 >> KEY_BITS) as u32 & SEVERAL
    }

    fn object(self) -> u32 {
        (self.0 >> (KEY_BITS + SYMBOL_BITS)) as u32
    }

    /// Returns the entry for what both say, which have the same key; this one may be free.
    #[inline]
    #[must_use]
    pub fn and(self, new: Self) -> Self {
        if self == Self::FREE || self == new {
            return new;
        }
        Self::with_key(new.key(), SEVERAL, new.object().min(self.object()))
    }

    /// Returns which objects may define the name.
    #[inline]
    #[must_use]
    pub fn definer(self) -> Definer {
        match self.symbol() {
            _ if self == Self::FREE => Definer::NoObject,
            SEVERAL => Definer::From(self.object()),
            symbol => Definer::Only(self.object(), symbol),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HASH: u32 = 0xdead_beef;

    #[test]
    fn one_definition_is_the_only_one() {
        let entry = Entry::FREE.and(Entry::new(HASH, 12, 4095));
        assert_eq!((entry.key(), entry.definer()), (HASH >> 1, Definer::Only(4095, 12)));
        // The lowest bit of a hash is not stored.
        assert!(entry.and(Entry::new(HASH ^ 1, 12, 4095)) == entry);
        assert_eq!(Entry::FREE.definer(), Definer::NoObject);
    }

    #[test]
    fn of_several_the_first_object_is_known() {
        let entry = Entry::new(HASH, 12, 7).and(Entry::new(HASH, 3, 5));
        assert_eq!((entry.key(), entry.definer()), (HASH >> 1, Definer::From(5)));
        let entry = entry.and(Entry::new(HASH, 3, 9));
        assert_eq!(entry.definer(), Definer::From(5));
        // Two symbols of one object, too.
        assert_eq!(Entry::new(HASH, 1, 7).and(Entry::new(HASH, 2, 7)).definer(), Definer::From(7));
    }

    #[test]
    fn a_symbol_with_a_high_number_is_searched_for() {
        let definer = |symbol| Entry::new(HASH, symbol, 7).definer();
        assert_eq!(definer(SEVERAL - 1), Definer::Only(7, SEVERAL - 1));
        assert_eq!([SEVERAL, u32::MAX].map(definer), [Definer::From(7); 2]);
    }
}
