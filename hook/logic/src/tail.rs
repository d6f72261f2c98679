//! The end of a text that comes in pieces.

/// The last bytes of a text, at most `MOST`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tail<const MOST: usize> {
    /// The bytes, followed by zeros.
    pub bytes: [u8; MOST],
    /// How many there are.
    pub len: usize,
    /// Whether there were more.
    pub is_cut: bool,
}

impl<const MOST: usize> Tail<MOST> {
    /// Of an empty text.
    pub const EMPTY: Self = Self { bytes: [0; MOST], len: 0, is_cut: false };

    /// Appends a piece, at most `MOST` bytes, in place of the first bytes where there is no room.
    pub fn push(&mut self, piece: &[u8]) {
        let lost = (self.len + piece.len()).saturating_sub(MOST).min(self.len);
        self.is_cut |= lost > 0;
        self.bytes.rotate_left(lost);
        self.len -= lost;
        for (place, byte) in self.bytes.iter_mut().skip(self.len).zip(piece) {
            *place = *byte;
        }
        self.len = (self.len + piece.len()).min(MOST);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(pieces: &[&str]) -> (std::string::String, bool) {
        let mut tail = Tail::<8>::EMPTY;
        pieces.iter().for_each(|piece| tail.push(piece.as_bytes()));
        let bytes = tail.bytes.get(..tail.len).expect("so many bytes");
        (std::str::from_utf8(bytes).expect("text").into(), tail.is_cut)
    }

    #[test]
    fn the_end_is_kept() {
        assert_eq!(of(&[]), (std::string::String::new(), false));
        assert_eq!(of(&["abc", "defgh"]), ("abcdefgh".into(), false));
        assert_eq!(of(&["abcdefgh", "ij"]), ("cdefghij".into(), true));
        assert_eq!(of(&["abcdefgh", "ijklmnop"]), ("ijklmnop".into(), true));
        assert_eq!(of(&["ab", "", "cdefgh", "i"]), ("bcdefghi".into(), true));
    }
}
