//! Is this the file that was recorded?

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::elf::Elf;
use crate::refusal::Reason;

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

impl ObjectKey {
    /// Of a file that was mapped at the moment `recorded`, of which nothing but the path was noted: as it is now, if it has not
    /// been changed since.
    #[must_use]
    pub fn of_file(path: &Path, recorded: SystemTime) -> Option<Self> {
        let elf = Elf::open(path)?.ok()?;
        let changed = path.metadata().and_then(|metadata| metadata.modified()).ok()?;
        (changed <= recorded).then(|| Self {
            path: path.to_owned(),
            build_id: elf.build_id().to_vec(),
            recorded: Some(recorded),
        })
    }
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
