//! The first page.

use super::{Error, pod_at};
use crate::layout::{Header, MAGIC, VERSION};

/// ELF machine number of x86-64.
const X86_64: u32 = 62;

/// Reads the header alone: the first [`PAGE`](crate::layout::PAGE) bytes of a file are enough.
///
/// # Errors
///
/// As [`Recording::parse`](super::Recording::parse).
pub fn parse_header(bytes: &[u8]) -> Result<Header, Error> {
    if bytes.is_empty() {
        return Err(Error::NoBytes);
    }
    let magic = &bytes[..bytes.len().min(MAGIC.len())];
    if !MAGIC.starts_with(magic) {
        if magic.iter().all(|&byte| byte == 0) {
            return Err(Error::NeverBegun);
        }
        return Err(Error::NotARecording { found: format!("\"{}\"", magic.escape_ascii()) });
    }
    let too_short = Error::TooShort { len: bytes.len(), expected: size_of::<Header>() };
    // These places are the same in all versions, so that any reader can tell what it has.
    let number = |offset| pod_at::<u32>(bytes, offset).ok_or_else(|| too_short.clone());
    let (version, reader_min, machine) = (number(8)?, number(12)?, number(16)?);
    if reader_min > VERSION {
        return Err(Error::LaterVersion { version, reader_min });
    }
    if machine != X86_64 {
        return Err(Error::OtherMachine { machine });
    }
    pod_at(bytes, 0).ok_or(too_short)
}
