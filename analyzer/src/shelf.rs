//! A place for very many small recordings: one file without a name, mapped piece by piece.
//!
//! A mapping for each would be more than a process may have (65,530), and all of them in anonymous memory more than there
//! is. The pages of this file are the system's to take back, and it is gone with the last of what is on it.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use memmap2::{Mmap, MmapOptions, UncheckedAdvice};
use rustix::fs::{FallocateFlags, fallocate};

/// Bytes of a piece.
const PIECE: usize = 64 << 20;
/// Recordings begin at multiples of this, a page: whole pages are written without a look at what was there.
const ALIGN: usize = 4096;

/// Bytes on a shelf.
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

impl Shelved {
    /// Gives back what of it is in memory, until it is looked at again.
    pub(crate) fn give_back(&self) {
        if let Piece::Mapped(map) = &*self.piece {
            let (at, len) = (self.range.start, self.range.len());
            // SAFETY: the mapping is of a file, read only and shared: who looks again finds the same.
            let _ = unsafe { map.unchecked_advise_range(UncheckedAdvice::DontNeed, at, len) };
        }
    }
}

#[derive(Debug)]
enum Piece {
    Mapped(Mmap),
    /// What no file could be had for.
    Owned(Vec<u8>),
}

/// Room on a shelf, which nobody else has.
struct Room {
    file: Arc<File>,
    /// Where it is in the file.
    offset: u64,
    place: Shelved,
}

/// The shelf.
#[derive(Debug)]
pub(crate) struct Shelf {
    /// Where the file may be.
    directories: Vec<PathBuf>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    file: Option<Arc<File>>,
    /// Length of the file.
    len: u64,
    /// The piece that is filled, where it is in the file, and how much of it is in use.
    piece: Option<(Arc<Piece>, u64)>,
    used: usize,
}

impl Shelf {
    /// An empty one, whose file will be in this directory, or where temporary files are.
    pub(crate) fn new(directory: &Path) -> Self {
        let directories = vec![directory.into(), std::env::temp_dir()];
        Self { directories, state: Mutex::default() }
    }

    /// Puts bytes there.
    pub(crate) fn put(&self, bytes: &[u8]) -> Shelved {
        self.place(bytes).unwrap_or_else(|_| {
            // Anonymous memory has to do.
            Shelved { piece: Arc::new(Piece::Owned(bytes.to_vec())), range: 0..bytes.len() }
        })
    }

    fn place(&self, bytes: &[u8]) -> io::Result<Shelved> {
        let room = self.take(bytes.len())?;
        // Not by the mapping, whose pages would have to be zeroed first.
        room.file.write_all_at(bytes, room.offset)?;
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
            // Its space is there: a full disk is an error here, and no signal later.
            fallocate(&*file, FallocateFlags::empty(), offset, bytes)?;
            // SAFETY: the file has no name, so nobody else makes it shorter. What of a piece is written is read only after that.
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
}
