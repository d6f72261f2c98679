//! Where records of one kind are written: one chunk after the other, each with as many as it has room for.

use core::marker::PhantomData;

use chase_format::writer::{Chunk, records_per_chunk};

/// Chunks of `LEN` bytes.
#[derive(Clone, Copy)]
pub(crate) struct Records<T, const LEN: usize> {
    chunk: Option<Chunk>,
    used: usize,
    record: PhantomData<T>,
}

impl<T, const LEN: usize> Records<T, LEN> {
    /// How many a chunk has.
    pub(crate) const PER_CHUNK: usize = records_per_chunk(LEN, size_of::<T>());
    pub(crate) const NONE: Self = Self { chunk: None, used: 0, record: PhantomData };

    /// Returns the next record, which is zero. If no chunk has room for it, continues in one that `more` makes, and of which all
    /// records can be read from then on; returns `None` if there is none.
    pub(crate) fn next(&mut self, more: impl FnOnce() -> Option<Chunk>) -> Option<*mut T> {
        if self.chunk.is_none() || self.used == Self::PER_CHUNK {
            let chunk = more()?;
            chunk.commit(Self::PER_CHUNK);
            (self.chunk, self.used) = (Some(chunk), 0);
        }
        self.used += 1;
        self.chunk.map(|chunk| chunk.contents().cast::<T>().wrapping_add(self.used - 1))
    }
}
