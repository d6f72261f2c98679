//! The file by which processes find the companion of their run: `<output>/session`.
//!
//! It holds the session's number in decimal and is locked (`flock`) as long as the companion takes
//! hellos. A process that can lock it knows that nobody listens.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Name of the file, in the directory of the run's recordings.
pub const FILE_NAME: &str = "session";

/// A session that processes can find.
#[derive(Debug)]
pub struct Session {
    file: File,
}

impl Session {
    /// Announces session `number` in `directory`; `None` if another companion is at work there.
    ///
    /// # Errors
    /// When the file can't be written.
    pub fn announce(directory: &Path, number: u64) -> io::Result<Option<Self>> {
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(false).mode(0o600).custom_flags(libc::O_NOFOLLOW);
        let mut file = options.open(directory.join(FILE_NAME))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(None),
            Err(TryLockError::Error(error)) => return Err(error),
        }
        file.set_len(0)?;
        writeln!(file, "{number}")?;
        Ok(Some(Self { file }))
    }

    /// No hello is taken any more, but for those of who has looked before.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn close(&self) -> io::Result<()> {
        self.file.unlock()
    }

    /// Takes hellos again; false if another companion has begun to.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn reopen(&self) -> io::Result<bool> {
        match self.file.try_lock() {
            Ok(()) => Ok(true),
            Err(TryLockError::WouldBlock) => Ok(false),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Session;

    #[test]
    fn one_companion_per_directory() {
        let directory = tempfile::TempDir::new().expect("a directory");
        let first = Session::announce(directory.path(), 7).expect("written").expect("the first");
        assert!(Session::announce(directory.path(), 8).expect("opened").is_none());
        let text =
            std::fs::read_to_string(directory.path().join(super::FILE_NAME)).expect("readable");
        assert_eq!(text, "7\n");
        first.close().expect("unlocked");
        let second = Session::announce(directory.path(), 8).expect("written").expect("the next");
        assert!(!first.reopen().expect("asked"));
        drop(second);
        assert!(first.reopen().expect("asked"));
    }
}
