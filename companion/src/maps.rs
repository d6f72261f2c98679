//! Reads the executable mappings of a process from `/proc/PID/maps`.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;

use chase_format::syscalls::{MAPPING_PATH, MappingRow};

use crate::shared::Process;

/// Inode of the initial pid namespace, which contains all others.
const FIRST_NAMESPACE: u64 = 0xeffffffc;

/// A mapping.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// First address.
    pub start: u64,
    /// When it was seen, `CLOCK_MONOTONIC`.
    pub seen_ns: u64,
    end: u64,
    offset: u64,
    /// Path of the file, as the process sees it; empty if there is none.
    pub path: Vec<u8>,
}

impl Mapping {
    /// Whether it contains the address.
    #[must_use]
    pub fn holds(&self, address: u64) -> bool {
        (self.start..self.end).contains(&address)
    }

    /// Whether it is anonymous memory, such as compilers use for generated code.
    #[must_use]
    pub fn is_anonymous(&self) -> bool {
        self.path.is_empty()
    }

    /// Whether `other` is the same mapping, seen at any time.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        (self.start, self.end, self.offset) == (other.start, other.end, other.offset)
            && self.path == other.path
    }

    /// Converts it to a row of the file.
    #[must_use]
    pub fn row(&self) -> MappingRow {
        let Self { start, end, offset, seen_ns, .. } = *self;
        let mut row = MappingRow { start, end, offset, seen_ns, path: [0; MAPPING_PATH] };
        let len = self.path.len().min(MAPPING_PATH - 1);
        row.path[..len].copy_from_slice(&self.path[..len]);
        row
    }
}

/// Returns the number of a process in `/proc`.
///
/// # Errors
/// If `/proc` can't be read.
pub fn number_of(process: &Process) -> io::Result<u32> {
    // Numbers in /proc are those of the companion's namespace. The process's numbers are known for the initial
    // namespace and for its own.
    let is_first = fs::metadata("/proc/self/ns/pid")?.ino() == FIRST_NAMESPACE;
    Ok(if is_first { process.pid } else { process.own_pid })
}

/// Reads the current executable mappings of a process.
///
/// # Errors
/// If it has ended, or may not be inspected.
pub fn executable_of(process: &Process) -> io::Result<Vec<Mapping>> {
    let pid = number_of(process)?;
    let text = fs::read(format!("/proc/{pid}/maps"))?;
    Ok(text
        .split(|&byte| byte == b'\n')
        .filter_map(parse)
        .filter(|one| one.1)
        .map(|one| one.0)
        .collect())
}

/// Parses a line; also returns whether the mapping is executable.
fn parse(line: &[u8]) -> Option<(Mapping, bool)> {
    // start-end rwxp offset device inode     path
    let mut fields = line.splitn(6, |&byte| byte == b' ');
    let mut field = || fields.next().and_then(|field| std::str::from_utf8(field).ok());
    let (start, end) = field()?.split_once('-')?;
    let hexadecimal = |text| u64::from_str_radix(text, 16).ok();
    let (start, end) = (hexadecimal(start)?, hexadecimal(end)?);
    let is_executable = field()?.as_bytes().get(2) == Some(&b'x');
    let offset = hexadecimal(field()?)?;
    let (_device, _inode) = (field()?, field()?);
    let path = fields.next().unwrap_or_default().trim_ascii().to_vec();
    Some((Mapping { start, end, offset, seen_ns: 0, path }, is_executable))
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn lines_are_taken_apart() {
        let line = b"7f00-7fff r-xp 00001000 08:01 123                        /lib/with space.so (deleted)";
        let (mapping, is_executable) = parse(line).expect("a line");
        assert!(is_executable && mapping.holds(0x7f00) && !mapping.holds(0x7fff));
        assert_eq!(
            (mapping.offset, mapping.path.as_slice()),
            (0x1000, &b"/lib/with space.so (deleted)"[..])
        );
        let (mapping, is_executable) = parse(b"10-20 rw-p 0 00:00 0 ").expect("a line");
        assert!(!is_executable && mapping.path.is_empty());
        assert_eq!(parse(b""), None);
        assert_eq!(parse(b"nonsense r-xp 0 0 0"), None);
    }
}
