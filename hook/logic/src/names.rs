//! Tables of function names, made at compile time, for looking up hundreds of thousands of names. Most names are in
//! no table, which a filter of their length and some of their bytes shows.

/// A row: names separated by spaces, and their common value. A name that ends in `*` is a prefix.
pub type Row<T> = (&'static [u8], T);

/// A name or a prefix, and its value.
type Entry<T> = Option<(Place, T)>;

/// The place of a name: the row in whose text it is, its start and its length. (An address would have to be relocated
/// in each process that loads the library.)
#[derive(Clone, Copy)]
struct Place {
    row: u8,
    len: u8,
    start: u16,
}

/// The maximum number of prefixes in a table.
const STARTS: usize = 32;
/// The minimum length of a prefix.
const PREFIX: usize = 3;
/// The numbers of words in the filter of prefixes, and in that of whole names.
const FILTER: usize = 8;
const WHOLE_FILTER: usize = 64;

/// A table with room for less than `ROOM` whole names; `ROOM` is a power of 2.
pub struct Names<T: 'static, const ROOM: usize> {
    rows: &'static [Row<T>],
    /// A hash table of whole names with linear probing.
    whole: [Entry<T>; ROOM],
    /// A Bloom filter of the whole names.
    whole_filter: [u64; WHOLE_FILTER],
    starts: [Entry<T>; STARTS],
    /// A Bloom filter of the first bytes of the prefixes.
    filter: [u64; FILTER],
}

impl<T: Copy, const ROOM: usize> Names<T, ROOM> {
    /// Makes the table of these rows. Does not compile if there are too many names, or if several rows match a name
    /// of the table.
    pub const fn new(rows: &'static [Row<T>]) -> Self {
        let mut this = Self {
            rows,
            whole: [const { None }; ROOM],
            whole_filter: [0; WHOLE_FILTER],
            starts: [const { None }; STARTS],
            filter: [0; FILTER],
        };
        let mut row = 0;
        while row < rows.len() {
            let (text, value) = rows[row];
            let mut rest = text;
            while !rest.is_empty() {
                let mut len = 0;
                while len < rest.len() && rest[len] != b' ' {
                    len += 1;
                }
                let (name, behind) = rest.split_at(len);
                let start = text.len() - rest.len();
                assert!(row <= u8::MAX as usize && len <= u8::MAX as usize);
                assert!(start <= u16::MAX as usize);
                let mut place = Place { row: row as u8, len: len as u8, start: start as u16 };
                if let [_, .., b'*'] = name {
                    place.len -= 1;
                    this.add_start(place, value);
                } else if len > 0 {
                    this.add(place, value);
                }
                rest = if let [b' ', behind @ ..] = behind { behind } else { behind };
            }
            row += 1;
        }
        this.check();
        this
    }

    /// Returns the name at a place.
    #[inline]
    const fn name(&self, place: Place) -> &'static [u8] {
        if place.row as usize >= self.rows.len() {
            return b"";
        }
        let (text, _) = self.rows[place.row as usize];
        match text.split_at_checked(place.start as usize) {
            Some((_, rest)) => match rest.split_at_checked(place.len as usize) {
                Some((name, _)) => name,
                None => b"",
            },
            None => b"",
        }
    }

    const fn add(&mut self, name_at: Place, value: T) {
        let name = self.name(name_at);
        let (mut at, mut taken) = (place(name, ROOM), 0);
        while self.whole[at].is_some() {
            (at, taken) = ((at + 1) % ROOM, taken + 1);
            // One place stays free, where searches end.
            assert!(taken < ROOM - 1);
        }
        self.whole[at] = Some((name_at, value));
        let (word, bit) = whole_bit(name);
        self.whole_filter[word] |= bit;
    }

    const fn add_start(&mut self, name_at: Place, value: T) {
        let mut at = 0;
        while self.starts[at].is_some() {
            at += 1;
        }
        self.starts[at] = Some((name_at, value));
        let (word, bit) = filter_bit(self.name(name_at));
        self.filter[word] |= bit;
    }

    /// Checks that each name is found where it is, and matches no other row.
    const fn check(&self) {
        let mut at = 0;
        while at < ROOM {
            if let Some((name_at, _)) = self.whole[at] {
                let name = self.name(name_at);
                assert!(matches!(self.find_whole(name), Some(found) if found == at));
                assert!(self.find_start(name).is_none());
            }
            at += 1;
        }
        let mut at = 0;
        while at < STARTS {
            if let Some((name_at, _)) = self.starts[at] {
                let start = self.name(name_at);
                assert!(matches!(self.find_start(start), Some(found) if found == at));
            }
            at += 1;
        }
    }

    /// Returns the value of `name`; `None` if it is not in the table.
    #[inline]
    pub const fn get(&self, name: &[u8]) -> Option<T> {
        let found = match self.find_whole(name) {
            Some(at) => self.whole[at % ROOM],
            None => match self.find_start(name) {
                Some(at) => self.starts[at % STARTS],
                None => None,
            },
        };
        match found {
            Some((_, value)) => Some(value),
            None => None,
        }
    }

    const fn find_whole(&self, name: &[u8]) -> Option<usize> {
        if name.is_empty() {
            return None;
        }
        let (word, bit) = whole_bit(name);
        if self.whole_filter[word] & bit == 0 {
            return None;
        }
        let mut at = place(name, ROOM);
        while let Some((entry, _)) = self.whole[at] {
            if entry.len as usize == name.len() && starts_with(name, self.name(entry)) {
                return Some(at);
            }
            at = (at + 1) % ROOM;
        }
        None
    }

    const fn find_start(&self, name: &[u8]) -> Option<usize> {
        if name.len() < PREFIX {
            return None;
        }
        let (word, bit) = filter_bit(name);
        if self.filter[word] & bit == 0 {
            return None;
        }
        let mut at = 0;
        while at < STARTS {
            match self.starts[at] {
                Some((start, _)) if starts_with(name, self.name(start)) => return Some(at),
                Some(_) => at += 1,
                None => break,
            }
        }
        None
    }
}

/// Returns where the search for a name begins.
const fn place(name: &[u8], room: usize) -> usize {
    assert!(room.is_power_of_two());
    let mut hash = 5381_u32;
    let mut at = 0;
    while at < name.len() {
        hash = hash.wrapping_mul(33).wrapping_add(name[at] as u32);
        at += 1;
    }
    (hash ^ hash >> 15) as usize & (room - 1)
}

/// Returns word and bit of the filter for names with the same first bytes as `name`.
const fn filter_bit(name: &[u8]) -> (usize, u64) {
    bit_of(name[0] as usize * 37 + name[1] as usize * 11 + name[2] as usize, FILTER)
}

/// Returns word and bit of the filter for names with the same length as `name`, and the same bytes at the start, in
/// the middle and at the end.
const fn whole_bit(name: &[u8]) -> (usize, u64) {
    let len = name.len();
    let [a, b, c] = [name[0] as usize, name[len / 2] as usize, name[len - 1] as usize];
    bit_of(a * 5 + b * 67 + c * 977 + len * 331, WHOLE_FILTER)
}

/// Returns word and bit in a filter of so many words.
const fn bit_of(hash: usize, words: usize) -> (usize, u64) {
    (hash / u64::BITS as usize % words, 1 << (hash % u64::BITS as usize))
}

const fn starts_with(name: &[u8], start: &[u8]) -> bool {
    if name.len() < start.len() {
        return false;
    }
    let mut at = 0;
    while at < start.len() {
        if name[at] != start[at] {
            return false;
        }
        at += 1;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    static SOME: Names<u32, 8> =
        Names::new(&[(b"read write", 1), (b"sem_*", 2), (b"a  _x mq_*", 3), (b"", 4)]);

    #[test]
    fn whole_names_and_starts_of_names_are_found() {
        let found: [(&[u8], u32); 7] = [
            (b"read", 1),
            (b"write", 1),
            (b"a", 3),
            (b"_x", 3),
            (b"sem_", 2),
            (b"sem_wait", 2),
            (b"mq_open", 3),
        ];
        for (name, value) in found {
            assert_eq!(SOME.get(name), Some(value), "{}", name.escape_ascii());
        }
    }

    #[test]
    fn other_names_are_not_found() {
        let others: [&[u8]; 9] =
            [b"", b"rea", b"reads", b"Read", b"b", b"sem", b"semop", b"sen_wait", &[b'a'; 100]];
        for name in others {
            assert_eq!(SOME.get(name), None, "{}", name.escape_ascii());
        }
    }

    #[test]
    fn a_full_table_finds_all_and_nothing_else() {
        static FULL: Names<u32, 4> = Names::new(&[(b"a b c", 1)]);
        assert!([b"a", b"b", b"c"].iter().all(|&name| FULL.get(name) == Some(1)));
        assert!((b'd'..=b'z').all(|byte| FULL.get(&[byte]).is_none()));
    }
}
