//! A chunk of a `.syscalls` file to which rows are appended.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use bytemuck::{NoUninit, Zeroable, bytes_of, cast_slice};
use chase_format::layout::{CHUNK_MAGIC, COMMITTED, ChunkHeader, ChunkKind, NONE, PAGE};

/// Size in bytes of a chunk.
pub(crate) const CHUNK: usize = 4 * PAGE;

/// The chunk to which rows of one kind are appended.
#[derive(Debug)]
pub(crate) struct Growing {
    kind: ChunkKind,
    /// Where it is; 0 if there is none yet.
    at: u64,
    header: ChunkHeader,
    /// Where the next row belongs.
    end: u64,
    /// What is before that and not in the file yet. It begins with room for the header if nothing of the chunk is there.
    waiting: Vec<u8>,
}

/// The position of a row in its file.
#[derive(Clone, Copy, Debug)]
pub struct Place(u64);

impl Growing {
    pub(crate) fn new(kind: ChunkKind) -> Self {
        Self { kind, at: 0, header: ChunkHeader::zeroed(), end: 0, waiting: Vec::new() }
    }

    pub(crate) fn add<T: NoUninit>(
        &mut self,
        file: &File,
        allocated: &mut u64,
        row: &T,
    ) -> io::Result<Place> {
        self.find_room::<T>(file, allocated)?;
        Ok(self.append(std::slice::from_ref(row)))
    }

    /// Adds rows that follow each other.
    pub(crate) fn add_all<T: NoUninit>(
        &mut self,
        file: &File,
        allocated: &mut u64,
        mut rows: &[T],
    ) -> io::Result<()> {
        while !rows.is_empty() {
            let room = self.find_room::<T>(file, allocated)?;
            let (now, later) = rows.split_at(room.min(rows.len()));
            self.append(now);
            rows = later;
        }
        Ok(())
    }

    /// Begins another chunk if the present one is full; returns for how many rows there is room.
    fn find_room<T>(&mut self, file: &File, allocated: &mut u64) -> io::Result<usize> {
        let in_chunk = (CHUNK - size_of::<ChunkHeader>()) / size_of::<T>();
        if self.at == 0 || self.header.count as usize == in_chunk {
            self.flush(file)?;
            self.at = *allocated;
            *allocated += CHUNK as u64;
            self.header = ChunkHeader {
                magic: CHUNK_MAGIC,
                kind: self.kind as u32,
                len: CHUNK as u64,
                state: COMMITTED,
                owner: NONE,
                ..ChunkHeader::zeroed()
            };
            self.waiting.resize(size_of::<ChunkHeader>(), 0);
            self.end = self.at + size_of::<ChunkHeader>() as u64;
        }
        Ok(in_chunk - self.header.count as usize)
    }

    /// Adds rows to the present chunk, which has room for them; returns the place of the first.
    fn append<T: NoUninit>(&mut self, rows: &[T]) -> Place {
        let place = Place(self.end);
        let bytes: &[u8] = cast_slice(rows);
        self.waiting.extend_from_slice(bytes);
        self.end += bytes.len() as u64;
        self.header.count += rows.len() as u32;
        place
    }

    /// Changes a row, in the file or on its way there.
    pub(crate) fn update<T: NoUninit>(
        &mut self,
        file: &File,
        Place(at): Place,
        row: &T,
    ) -> io::Result<()> {
        let written = self.end - self.waiting.len() as u64;
        let waiting = at.checked_sub(written).and_then(|at| self.waiting.get_mut(at as usize..));
        match waiting.and_then(|rows| rows.get_mut(..size_of::<T>())) {
            Some(waiting) => waiting.copy_from_slice(bytes_of(row)),
            None => file.write_all_at(bytes_of(row), at)?,
        }
        Ok(())
    }

    /// Writes what is not in the file yet.
    pub(crate) fn flush(&mut self, file: &File) -> io::Result<()> {
        if self.waiting.is_empty() {
            return Ok(());
        }
        let at = self.end - self.waiting.len() as u64;
        let header = bytes_of(&self.header);
        if at == self.at {
            // Nobody reads it before the file's header speaks of it.
            self.waiting[..header.len()].copy_from_slice(header);
            file.write_all_at(&self.waiting, at)?;
        } else {
            // First the rows, then how many there are.
            file.write_all_at(&self.waiting, at)?;
            file.write_all_at(header, self.at)?;
        }
        self.waiting.clear();
        Ok(())
    }
}
