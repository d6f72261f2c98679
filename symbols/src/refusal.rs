//! Why a file is not used.

use std::path::PathBuf;

/// A file that was there and was not used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}: {reason}", path.display())]
pub struct Refusal {
    /// The file.
    pub path: PathBuf,
    /// Why not.
    pub reason: Reason,
}

/// Why a file was not used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Reason {
    /// Another build than the one that was recorded.
    #[error("is another build: its build id is {}, recorded was {}", hex(found), hex(expected))]
    OtherBuild {
        /// Build id of the file, empty when it has none.
        found: Vec<u8>,
        /// Build id in the recording, empty when it has none.
        expected: Vec<u8>,
    },
    /// There is no build id to compare, and the file was changed after the recording.
    #[error("was changed after the recording, and has no build id to tell if it is the same")]
    Younger,
    /// Not the file that `.gnu_debuglink` means.
    #[error("has checksum {found:08x}, .gnu_debuglink says {expected:08x}")]
    Checksum {
        /// CRC-32 of the file.
        found: u32,
        /// CRC-32 in `.gnu_debuglink`.
        expected: u32,
    },
    /// It could not be read.
    #[error("{0}")]
    Unreadable(String),
}

/// `id` as a lower-case hexadecimal number, or "none".
pub(crate) fn hex(id: &[u8]) -> String {
    if id.is_empty() {
        return "none".to_owned();
    }
    id.iter().map(|byte| format!("{byte:02x}")).collect()
}
