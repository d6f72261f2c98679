//! Is this the file that was recorded?

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::elf::Elf;

/// A loaded object as the recording names it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ObjectKey {
    /// Path as the dynamic linker knew it, below the process's directory if it was relative: only
    /// an absolute path is opened.
    pub path: PathBuf,
    /// GNU build id; empty when it has none.
    pub build_id: Vec<u8>,
    /// When it was recorded. Stands in for the build id where there is none: a file changed later
    /// is not used.
    pub recorded: Option<SystemTime>,
}

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

/// Fails unless `elf`, read from `path`, is the object of `key` or its debug file, with the CRC-32
/// `checksum` if a `.gnu_debuglink` led to it.
pub(crate) fn verify(
    key: &ObjectKey,
    path: &Path,
    elf: &Elf,
    checksum: Option<u32>,
) -> Result<(), Reason> {
    let found = elf.build_id();
    if found != key.build_id {
        let expected = key.build_id.clone();
        return Err(Reason::OtherBuild { found: found.to_vec(), expected });
    }
    if let Some(expected) = checksum {
        let found = crc32(path).map_err(|error| Reason::Unreadable(error.to_string()))?;
        return if found == expected { Ok(()) } else { Err(Reason::Checksum { found, expected }) };
    }
    let changed = path.metadata().and_then(|metadata| metadata.modified());
    match (changed, key.recorded) {
        (Ok(changed), Some(recorded)) if found.is_empty() && changed > recorded => {
            Err(Reason::Younger)
        }
        _ => Ok(()),
    }
}

fn crc32(path: &Path) -> std::io::Result<u32> {
    let mut reader = BufReader::with_capacity(1 << 16, File::open(path)?);
    let mut hasher = crc32fast::Hasher::new();
    loop {
        let bytes = reader.fill_buf()?;
        if bytes.is_empty() {
            return Ok(hasher.finalize());
        }
        hasher.update(bytes);
        let len = bytes.len();
        reader.consume(len);
    }
}
