//! The file by which processes find the companion of their run: `<output>/companion.session`.
//!
//! Its first line says what it is, the second `session N`, N being the number that a hello must
//! have. Where the companion takes samples alone, that line is `samples REASON`: no hello is heard, and the reason says
//! why. It is locked (`flock`) as long as the companion takes hellos. A process that gets the lock
//! knows that nobody listens; it starts a companion, which inherits the lock with the open file.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

/// Name of the file, in the directory of the run's recordings.
pub const FILE_NAME: &str = "companion.session";
/// Its first line.
pub const FIRST_LINE: &str = "chase companion 1";

const TRIES: u32 = 20;
const BETWEEN_TRIES: Duration = Duration::from_millis(1);

/// A session that processes can find.
#[derive(Debug)]
pub struct Session {
    file: File,
    /// The second line.
    said: String,
}

impl Session {
    /// What is said of session `number`.
    #[must_use]
    pub fn line(number: u64) -> String {
        format!("session {number}")
    }

    /// Announces a session in `directory`; `None` if another companion is at work there.
    ///
    /// # Errors
    /// When the file can't be written, or is something else.
    pub fn announce(directory: &Path, said: String) -> io::Result<Option<Self>> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false).mode(0o600);
        let mut file = options
            .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK)
            .open(directory.join(FILE_NAME))?;
        let mut text = Vec::new();
        if !file.metadata()?.is_file() {
            return Err(io::Error::other("it is no regular file"));
        }
        file.read_to_end(&mut text)?;
        if !text.is_empty() && !text.starts_with(FIRST_LINE.as_bytes()) {
            return Err(io::Error::other(format!("{FILE_NAME} is something else")));
        }
        if !lock(&file)? {
            return Ok(None);
        }
        Self::adopt(file, said).map(Some)
    }

    /// The same with a file that is open and locked.
    ///
    /// # Errors
    /// When it can't be written.
    pub fn adopt(file: File, said: String) -> io::Result<Self> {
        let this = Self { file, said };
        this.write()?;
        Ok(this)
    }

    /// The first line stays: a file that was emptied and written again is written to the disk at
    /// once by some file systems (ext4), and its blocks are freed the next time, which may take a
    /// second.
    fn write(&self) -> io::Result<()> {
        let first = format!("{FIRST_LINE}\n");
        self.file.write_all_at(first.as_bytes(), 0)?;
        self.file.set_len(first.len() as u64)?;
        let second = format!("{}\n", self.said);
        self.file.write_all_at(second.as_bytes(), first.len() as u64)
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
        if !lock(&self.file)? {
            return Ok(false);
        }
        self.write()?;
        Ok(true)
    }
}

/// Processes that look for a companion may have the lock for a moment.
fn lock(file: &File) -> io::Result<bool> {
    for _ in 0..TRIES {
        match file.try_lock() {
            Ok(()) => return Ok(true),
            Err(TryLockError::WouldBlock) => sleep(BETWEEN_TRIES),
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::Session;

    #[test]
    fn one_companion_per_directory() {
        let directory = tempfile::TempDir::new().expect("a directory");
        let first = Session::announce(directory.path(), Session::line(7))
            .expect("written")
            .expect("the first");
        assert!(Session::announce(directory.path(), Session::line(8)).expect("opened").is_none());
        let path = directory.path().join(super::FILE_NAME);
        let text = std::fs::read_to_string(path).expect("readable");
        assert_eq!(text, "chase companion 1\nsession 7\n");
        first.close().expect("unlocked");
        let second = Session::announce(directory.path(), Session::line(8))
            .expect("written")
            .expect("the next");
        assert!(!first.reopen().expect("asked"));
        drop(second);
        assert!(first.reopen().expect("asked"));
    }

    #[test]
    fn what_is_no_session_is_left_alone() {
        let directory = tempfile::TempDir::new().expect("a directory");
        let path = directory.path().join(super::FILE_NAME);
        std::fs::write(&path, "precious").expect("written");
        assert!(Session::announce(directory.path(), Session::line(7)).is_err());
        assert_eq!(std::fs::read_to_string(path).expect("readable"), "precious");
    }
}
