//! Memory that is read by address.

const WORD: usize = size_of::<usize>();

/// Memory of which some can't be read.
pub trait Memory {
    /// Reads the word at `address`; `None` if it is not aligned or not readable.
    fn word(&mut self, address: usize) -> Option<usize>;

    /// Reads the byte at `address`; `None` if it is not readable.
    fn byte(&mut self, address: usize) -> Option<u8> {
        let word = self.word(address & !(WORD - 1))?;
        Some((word >> (address % WORD * 8)) as u8)
    }
}
