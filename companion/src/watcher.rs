//! The interface of watching, with or without privilege.

use std::error::Error;
use std::io;
use std::path::PathBuf;

/// The result of a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// The number of living processes.
    pub live: usize,
    /// The number of processes that have ended since the last round.
    pub ended: usize,
}

/// Watches processes, and writes what it observes.
pub trait Watcher {
    /// Watches a process, and what it starts from now on. Does nothing if processes ask for it themselves.
    ///
    /// # Errors
    /// If it can't be watched.
    fn follow(&mut self, _pid: u32) -> Result<(), Box<dyn Error + Send + Sync>> {
        Ok(())
    }

    /// Gives up the rights that are not needed any more.
    ///
    /// # Errors
    /// If the kernel refuses.
    fn give_up_rights(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// Writes what has changed, and closes the files of processes that have ended.
    fn round(&mut self) -> Found;

    /// Marks the files of processes that still live as incomplete.
    fn stop(&mut self);

    /// Returns the first file that could not be written, and the error.
    fn failure(&self) -> Option<&(PathBuf, io::Error)>;

    /// Returns counts of what was left out, and what it was.
    fn left_out(&self) -> Vec<(u64, &'static str)>;
}
