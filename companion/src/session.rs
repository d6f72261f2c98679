//! The file by which processes find the companion of their run: `<output>/companion.session` (see
//! `chase_format::session` for its format).
//!
//! A process that gets its lock knows that no companion listens; it starts one, which inherits the lock with the open
//! file.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, SystemTime};

use chase_format::session::{
    AUTO, FAILED, FILE_NAME, FIRST_LINE, IDLE, PROCESS, SAMPLING, SESSION,
};
use chase_logic::handshake::{Hold, LONGEST_LINE, SessionFile, claim, write_line};

const TRIES: u32 = 20;
const BETWEEN_TRIES: Duration = Duration::from_millis(1);
/// Bytes of the third line: its prefix, 20 digits and the end of the line.
const IDLE_LINE: usize = IDLE.len() + 20 + 1;

/// A session that processes can find.
#[derive(Debug)]
pub struct Session {
    file: File,
    /// The second line.
    said: String,
    /// How often samples were asked for.
    sampling: String,
}

impl Session {
    /// Returns the second line for session `number`.
    #[must_use]
    pub fn line(number: u64) -> String {
        format!("{SESSION}{number}")
    }

    /// Announces a session in `directory`, with its second line and how often samples were asked for (empty: nobody did); returns
    /// `None` if another companion is active there.
    ///
    /// # Errors
    /// If the file can't be written, or is another program's.
    pub fn announce(directory: &Path, said: String, sampling: &str) -> io::Result<Option<Self>> {
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
        Self::adopt(file, said, sampling).map(Some)
    }

    /// Announces a session in a file that is open and locked.
    ///
    /// # Errors
    /// If the file can't be written.
    pub fn adopt(file: File, mut said: String, sampling: &str) -> io::Result<Self> {
        while said.len() > LONGEST_LINE {
            said.pop();
        }
        let sampling = if sampling.is_empty() { AUTO } else { sampling }.to_owned();
        let this = Self { file, said, sampling };
        this.write()?;
        Ok(this)
    }

    /// Leaves the reason why there is no session, for processes that look for one within the next minute.
    ///
    /// # Errors
    /// If the file can't be written.
    pub fn fail(file: &File, reason: &str) -> io::Result<()> {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let reason = reason.replace('\n', " ");
        write_line(&Shared(file), format!("{FAILED}{} {reason}", now.as_secs()).as_bytes())
    }

    fn write(&self) -> io::Result<()> {
        write_line(&Shared(&self.file), self.said.as_bytes())?;
        self.say_idle(0)?;
        let (process, sampling) = (std::process::id(), &self.sampling);
        let line = format!("{PROCESS}{process}{SAMPLING}{sampling}\n");
        self.file.write_all_at(line.as_bytes(), self.third_line() + IDLE_LINE as u64)
    }

    /// Where the third line begins.
    fn third_line(&self) -> u64 {
        format!("{FIRST_LINE}\n{}\n", self.said).len() as u64
    }

    /// Writes that nothing is left to do since `since_ns` (`CLOCK_MONOTONIC`), or, with 0, that something is.
    ///
    /// # Errors
    /// If the file can't be written.
    pub fn say_idle(&self, since_ns: u64) -> io::Result<()> {
        let line = format!("{IDLE}{since_ns:020}\n");
        self.file.write_all_at(line.as_bytes(), self.third_line())
    }

    /// Whether no process can find the session any more, because its file was removed.
    #[must_use]
    pub fn is_gone(&self) -> bool {
        self.file.metadata().is_ok_and(|metadata| metadata.nlink() == 0)
    }

    /// Stops accepting hellos, except from processes that have found the session before.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn close(&self) -> io::Result<()> {
        self.file.unlock()
    }

    /// Accepts hellos again; returns false if another companion has begun to.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn reopen(&self) -> io::Result<bool> {
        if !lock(&self.file)? {
            return Ok(false);
        }
        self.write()?;
        Ok(true)
    }
}

/// The file, as processes that look for a companion see it.
struct Shared<'a>(&'a File);

impl SessionFile for Shared<'_> {
    type Error = io::Error;

    fn is_own(&self) -> bool {
        // SAFETY: it only asks for a number.
        let user = unsafe { libc::geteuid() };
        self.0.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.uid() == user)
    }

    fn lock(&self, how: Hold) -> io::Result<bool> {
        let locked = match how {
            Hold::Shared => self.0.try_lock_shared(),
            Hold::Alone => self.0.try_lock(),
        };
        match locked {
            Ok(()) => Ok(true),
            Err(TryLockError::WouldBlock) => Ok(false),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    fn unlock(&self) {
        // If that fails, the end of this process does it.
        let _ = self.0.unlock();
    }

    fn read_start<'b>(&self, buffer: &'b mut [u8]) -> &'b [u8] {
        let len = self.0.read_at(buffer, 0).unwrap_or(0);
        buffer.get(..len).unwrap_or(&[])
    }

    fn write_at(&self, bytes: &[u8], offset: usize) -> io::Result<()> {
        self.0.write_all_at(bytes, offset as u64)
    }

    fn cut(&self, len: usize) -> io::Result<()> {
        self.0.set_len(len as u64)
    }
}

/// Locks the file; returns false if it stays locked. Tries several times, since processes that look for a companion
/// hold the lock for a moment.
fn lock(file: &File) -> io::Result<bool> {
    for _ in 0..TRIES {
        if claim(&Shared(file))? {
            return Ok(true);
        }
        sleep(BETWEEN_TRIES);
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use chase_format::session::{idle_since, sampling};

    use super::{FILE_NAME, Session};

    #[test]
    fn one_companion_per_directory() {
        let directory = tempfile::TempDir::new().expect("a directory");
        let first = Session::announce(directory.path(), Session::line(7), "off")
            .expect("written")
            .expect("the first");
        assert!(
            Session::announce(directory.path(), Session::line(8), "").expect("opened").is_none()
        );
        let path = directory.path().join(FILE_NAME);
        let text = std::fs::read_to_string(path).expect("readable");
        assert!(text.starts_with("chase companion 1\nsession 7\n"), "{text}");
        assert_eq!(idle_since(text.as_bytes()), None);
        first.say_idle(42).expect("written");
        let text = std::fs::read(directory.path().join(FILE_NAME)).expect("readable");
        assert_eq!(idle_since(&text), Some(42));
        assert_eq!(sampling(&text), Some((std::process::id() as i32, "off")));
        assert!(!first.is_gone());
        first.close().expect("unlocked");
        let second = Session::announce(directory.path(), Session::line(8), "")
            .expect("written")
            .expect("the next");
        assert!(!first.reopen().expect("asked"));
        drop(second);
        assert!(first.reopen().expect("asked"));
    }

    #[test]
    fn what_is_no_session_is_left_alone() {
        let directory = tempfile::TempDir::new().expect("a directory");
        let path = directory.path().join(FILE_NAME);
        std::fs::write(&path, "precious").expect("written");
        assert!(Session::announce(directory.path(), Session::line(7), "").is_err());
        assert_eq!(std::fs::read_to_string(path).expect("readable"), "precious");
    }
}
