//! Where records of one kind are written: one chunk after the other, each with as many as it has room for.

use core::marker::PhantomData;

use chase_format::writer::{Chunk, records_per_chunk};

/// Chunks of `LEN` bytes.
pub(crate) struct Records<T, const LEN: usize> {
    chunk: Option<Chunk>,
    used: usize,
    record: PhantomData<T>,
}

impl<T, const LEN: usize> Records<T, LEN> {
    /// How many a chunk has.
    pub(crate) const PER_CHUNK: usize = records_per_chunk(LEN, size_of::<T>());
    pub(crate) const NONE: Self = Self { chunk: None, used: 0, record: PhantomData };

    /// Returns the next record, which is zero; `None` if there is no chunk with room for it: see [`Records::enter`].
    pub(crate) fn next(&mut self) -> Option<*mut T> {
        let chunk = self.chunk.filter(|_| self.used < Self::PER_CHUNK)?;
        self.used += 1;
        Some(chunk.contents().cast::<T>().wrapping_add(self.used - 1))
    }

    /// Continues in a new chunk, of which all records can be read from now on; returns the first.
    pub(crate) fn enter(&mut self, chunk: Chunk) -> *mut T {
        chunk.commit(Self::PER_CHUNK);
        (self.chunk, self.used) = (Some(chunk), 1);
        chunk.contents().cast()
    }
}
