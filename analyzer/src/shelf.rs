//! Storage for very many small recordings: one file without a name, mapped piece by piece.
//!
//! Individual mappings would be more than a process may have (65,530), and anonymous memory may not suffice for all
//! of them. The pages of this file can be reclaimed by the system, and the file is gone when nothing in it is used
//! any more.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use memmap2::{Mmap, MmapOptions};
use rustix::fs::{FallocateFlags, fallocate};

/// Size of a piece in bytes.
const PIECE: usize = 64 << 20;
/// Recordings begin at multiples of this, the size of a page: whole pages are written without reading them first.
const ALIGN: usize = 4096;

/// Bytes in the storage.
#[derive(Clone, Debug)]
pub(crate) struct Shelved {
    piece: Arc<Piece>,
    range: Range<usize>,
}

impl AsRef<[u8]> for Shelved {
    fn as_ref(&self) -> &[u8] {
        match &*self.piece {
            Piece::Mapped(map) => &map[self.range.clone()],
            Piece::Owned(bytes) => &bytes[self.range.clone()],
        }
    }
}

#[derive(Debug)]
enum Piece {
    Mapped(Mmap),
    /// Bytes for which there was no file.
    Owned(Vec<u8>),
}

/// Reserved space in the storage.
struct Room {
    file: Arc<File>,
    /// Its offset in the file.
    offset: u64,
    place: Shelved,
}

/// The storage.
#[derive(Debug)]
pub(crate) struct Shelf {
    /// Where the file may be created.
    directories: Vec<PathBuf>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    file: Option<Arc<File>>,
    /// Length of the file.
    len: u64,
    /// The piece that is being filled, and its offset in the file; how much of it is used.
    piece: Option<(Arc<Piece>, u64)>,
    used: usize,
}

impl Shelf {
    /// Returns an empty storage, whose file will be in this directory, or where temporary files are.
    pub(crate) fn new(directory: &Path) -> Self {
        let directories = vec![directory.into(), std::env::temp_dir()];
        Self { directories, state: Mutex::default() }
    }

    /// Stores bytes.
    pub(crate) fn put(&self, bytes: &[u8]) -> Shelved {
        self.place(bytes).unwrap_or_else(|_| {
            // Without a file, use anonymous memory.
            Shelved { piece: Arc::new(Piece::Owned(bytes.to_vec())), range: 0..bytes.len() }
        })
    }

    fn place(&self, bytes: &[u8]) -> io::Result<Shelved> {
        let room = self.take(bytes.len())?;
        // Not written through the mapping, whose pages would have to be zeroed first.
        let mut from = 0;
        while from < bytes.len() {
            let next = &bytes[from..];
            if is_zero(&next[..ALIGN.min(next.len())]) {
                // It is zero already.
                from += ALIGN;
                continue;
            }
            let written = next.chunks(ALIGN).take_while(|page| !is_zero(page));
            let len = written.map(<[u8]>::len).sum();
            room.file.write_all_at(&next[..len], room.offset + from as u64)?;
            from += len;
        }
        Ok(room.place)
    }

    fn take(&self, len: usize) -> io::Result<Room> {
        let state = &mut *self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.file.is_none() {
            let made = self.directories.iter().find_map(|path| tempfile::tempfile_in(path).ok());
            state.file = Some(Arc::new(made.ok_or(io::ErrorKind::PermissionDenied)?));
        }
        let Some(file) = state.file.clone() else { return Err(io::ErrorKind::NotFound.into()) };
        if state.piece.is_none() || state.used + len > PIECE {
            let piece_len = PIECE.max(len).next_multiple_of(ALIGN);
            let (offset, bytes) = (state.len, piece_len as u64);
            // Its space is allocated: a full disk is an error here, and no signal later.
            fallocate(&*file, FallocateFlags::empty(), offset, bytes)?;
            // SAFETY: the file has no name, so nobody else can shorten it. Parts of a piece are only read after they
            // were written.
            let map = unsafe { MmapOptions::new().offset(offset).len(piece_len).map(&*file)? };
            state.len += bytes;
            (state.piece, state.used) = (Some((Arc::new(Piece::Mapped(map)), offset)), 0);
        }
        let Some((piece, at)) = state.piece.clone() else {
            return Err(io::ErrorKind::NotFound.into());
        };
        let range = state.used..state.used + len;
        state.used = range.end.next_multiple_of(ALIGN);
        let offset = at + range.start as u64;
        Ok(Room { file, offset, place: Shelved { piece, range } })
    }
}

fn is_zero(page: &[u8]) -> bool {
    const ZEROS: &[u8; ALIGN] = &[0; ALIGN];
    page == &ZEROS[..page.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_put_there_is_there() {
        let shelf = Shelf::new(Path::new("/nowhere"));
        let text = |number: usize| vec![number as u8; 1000 + number * 100_000];
        let all: Vec<Shelved> = (0..40).map(|number| shelf.put(&text(number))).collect();
        let large = shelf.put(&vec![7; PIECE + 1]);
        for (number, shelved) in all.iter().enumerate() {
            assert!(shelved.as_ref() == text(number), "{number}");
        }
        assert!(large.as_ref().iter().all(|&byte| byte == 7) && large.as_ref().len() == PIECE + 1);
        assert!(shelf.put(b"").as_ref().is_empty());
    }

    #[test]
    fn what_was_put_there_may_have_zeros_anywhere() {
        let shelf = Shelf::new(Path::new("/nowhere"));
        for pages in 0..32_u32 {
            let is_written = |page: usize| pages >> page & 1 != 0;
            for len in [5 * ALIGN, 4 * ALIGN + 1, 5 * ALIGN - 1] {
                let bytes: Vec<u8> = (0..len)
                    .map(|at| u8::from(is_written(at / ALIGN) && at % 1000 == 0) * 7)
                    .collect();
                assert!(shelf.put(&bytes).as_ref() == bytes, "{pages:b} {len}");
            }
        }
    }
}
