//! Who watches, with privilege or without.

use std::error::Error;
use std::io;
use std::path::PathBuf;

/// What a round found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// Processes that live.
    pub live: usize,
    /// Processes that have ended since the last round.
    pub ended: usize,
}

/// Who watches processes and writes what is seen of them.
pub trait Watcher {
    /// Watches a process, and what it starts from now on; nothing to do where processes ask for it themselves.
    ///
    /// # Errors
    /// When it can't be watched.
    fn follow(&mut self, _pid: u32) -> Result<(), Box<dyn Error + Send + Sync>> {
        Ok(())
    }

    /// Writes what has changed, and lets go of what has ended.
    fn round(&mut self) -> Found;

    /// Marks the files of processes that live as incomplete.
    fn stop(&mut self);

    /// The first file that could not be written.
    fn failure(&self) -> Option<&(PathBuf, io::Error)>;

    /// What was left out, as counts of what.
    fn left_out(&self) -> Vec<(u64, &'static str)>;
}
