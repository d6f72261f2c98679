//! Why nothing can be analysed.

use std::path::PathBuf;

use chase_recorder::reader;

/// How to make recordings, for errors about finding none.
const HOW: &str = "record a program with `chase record ./app`";

/// Recordings could not be found or read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Nothing exists at the path.
    #[error("there is no {path}: {HOW}, which writes to chase.data/, or name another path")]
    Missing {
        /// The path asked for.
        path: PathBuf,
    },
    /// A directory without recordings.
    #[error("there is no recording (*.chase) in {path}: {HOW}, or name another directory")]
    Empty {
        /// The directory.
        path: PathBuf,
    },
    /// There are recordings, but none can be read.
    #[error(
        "none of the {} recordings in {path} can be read; {}: {}",
        failures.len(), failures[0], failures[0].cause
    )]
    AllFailed {
        /// The directory.
        path: PathBuf,
        /// What is wrong with each; at least one.
        failures: Vec<Failure>,
    },
    /// One file can't be read.
    #[error(transparent)]
    File(#[from] Failure),
    /// Recordings can't be folded.
    #[error("cannot fold the recordings in {path}")]
    Fold {
        /// The directory.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A directory can't be listed.
    #[error("cannot list {path}")]
    Directory {
        /// The directory.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
}

/// A file that can't be read.
#[derive(Debug, thiserror::Error)]
#[error("cannot read {path}")]
pub struct Failure {
    /// The file.
    pub path: PathBuf,
    /// Why.
    #[source]
    pub cause: Cause,
}

/// Why a file can't be read.
#[derive(Debug, thiserror::Error)]
pub enum Cause {
    /// The system's error.
    #[error(transparent)]
    Io(#[from] std::io::Error),
    /// A `.syscalls` file that is not of the same process as the recording beside it.
    #[error(
        "its system calls are those of another, earlier process (pid {pid}, the recording's is \
         {expected}): they were left out; delete the file"
    )]
    OtherProcess {
        /// Process id in the file.
        pid: u32,
        /// Process id in the recording.
        expected: u32,
    },
    /// Its contents are invalid.
    #[error(transparent)]
    Format(#[from] reader::Error),
}
