//! A place for very many small recordings: one file without a name, mapped piece by piece.
//!
//! A mapping for each would be more than a process may have (65,530), and all of them in anonymous memory more than there
//! is. The pages of this file are the system's to take back, and it is gone with the last of what is on it.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use memmap2::{MmapMut, MmapOptions};

/// Bytes of a piece.
const PIECE: usize = 64 << 20;
/// Recordings begin at multiples of this.
const ALIGN: usize = 64;

/// Bytes on a shelf.
#[derive(Clone, Debug)]
pub(crate) struct Shelved {
    piece: Arc<Piece>,
    range: Range<usize>,
}

impl AsRef<[u8]> for Shelved {
    fn as_ref(&self) -> &[u8] {
        match &*self.piece {
            // SAFETY: the range was given out once, filled before it was, and is not written again.
            Piece::Mapped(map) => unsafe {
                std::slice::from_raw_parts(map.as_ptr().add(self.range.start), self.range.len())
            },
            Piece::Owned(bytes) => &bytes[self.range.clone()],
        }
    }
}

#[derive(Debug)]
enum Piece {
    Mapped(MmapMut),
    /// What no file could be had for.
    Owned(Vec<u8>),
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
    file: Option<File>,
    /// Length of the file.
    len: usize,
    piece: Option<Arc<Piece>>,
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
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        self.place(&mut state, bytes).unwrap_or_else(|_| {
            // Anonymous memory has to do.
            Shelved { piece: Arc::new(Piece::Owned(bytes.to_vec())), range: 0..bytes.len() }
        })
    }

    fn place(&self, state: &mut State, bytes: &[u8]) -> io::Result<Shelved> {
        let has_room = state.piece.is_some() && state.used + bytes.len() <= PIECE;
        if !has_room {
            let len = PIECE.max(bytes.len());
            let piece = Arc::new(Piece::Mapped(self.more(state, len)?));
            (state.piece, state.used) = (Some(piece), 0);
        }
        let range = state.used..state.used + bytes.len();
        state.used = range.end.next_multiple_of(ALIGN);
        match state.piece.clone() {
            Some(piece) => {
                if let Piece::Mapped(map) = &*piece {
                    // SAFETY: the range is inside the piece, and nobody else's: `used` is behind it, and the lock is held.
                    unsafe {
                        let to = map.as_ptr().cast_mut().add(range.start);
                        std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len());
                    }
                }
                Ok(Shelved { piece, range })
            }
            None => Err(io::ErrorKind::OutOfMemory.into()),
        }
    }

    fn more(&self, state: &mut State, len: usize) -> io::Result<MmapMut> {
        if state.file.is_none() {
            let made = self.directories.iter().find_map(|path| tempfile::tempfile_in(path).ok());
            state.file = Some(made.ok_or(io::ErrorKind::PermissionDenied)?);
        }
        let Some(file) = &state.file else { return Err(io::ErrorKind::NotFound.into()) };
        // Its space is there: a full disk is an error here, and no signal later.
        rustix::fs::fallocate(
            file,
            rustix::fs::FallocateFlags::empty(),
            state.len as u64,
            len as u64,
        )?;
        // SAFETY: the file has no name, so nobody else makes it shorter or writes to it.
        let map = unsafe { MmapOptions::new().offset(state.len as u64).len(len).map_mut(file)? };
        state.len += len.next_multiple_of(PIECE);
        Ok(map)
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
