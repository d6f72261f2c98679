//! Names of generated code that compilers dump for `perf` (`jit-PID.dump`): node with `--perf-prof`, and Java agents.
//! The format is described in Linux's `tools/perf/Documentation/jitdump-specification.txt`.
//!
//! A dump also contains the code, and may be long: it is read once, from start to end, and converted to the lines of a
//! list of names (`perf-PID.map`). It may be damaged in any way. (Existing crates for dumps also implement all of
//! perf's own format.)

use std::collections::HashMap;
use std::io::{self, BufRead, Read, Write};

/// "JiTD", in the byte order of the writer's processor.
const MAGIC: u32 = 0x4A69_5444;
/// Minimum size of the header in bytes.
const HEADER: usize = 40;
/// Size of a record's prefix: its kind, length and time.
const PREFIX: usize = 16;
/// Kinds of records.
const LOAD: u32 = 0;
const MOVE: u32 = 1;
const CLOSE: u32 = 3;
/// Sizes in bytes of a load's fields before its name, and of a move's fields.
const LOAD_FIELDS: usize = 40;
const MOVE_FIELDS: usize = 48;
/// Longer names are cut. Moves of further functions are ignored.
const LONGEST_NAME: usize = 4096;
const MANY: usize = 1 << 20;

/// Whether a file with this name may be the dump of a process.
#[must_use]
pub fn is_name_of(pid: u32, name: &[u8]) -> bool {
    name == format!("jit-{pid}.dump").as_bytes()
}

/// Writes a line `START SIZE NAME`, with hexadecimal numbers, for each function in `dump`, in its order. Stops without
/// an error where the dump is damaged or incomplete; what precedes is valid.
///
/// # Errors
/// Fails if `list` can't be written, or `dump` can't be read.
pub fn write_names(dump: &mut impl BufRead, list: &mut impl Write) -> io::Result<()> {
    let mut header = [0; HEADER];
    if !fill(dump, &mut header)? || word(&header, 0) != MAGIC {
        return Ok(());
    }
    let more = (word(&header, 8) as usize).saturating_sub(HEADER);
    skip(dump, more as u64)?;
    let mut names: HashMap<u64, String> = HashMap::new();
    loop {
        let mut prefix = [0; PREFIX];
        if !fill(dump, &mut prefix)? {
            return Ok(());
        }
        let Some(len) = u64::from(word(&prefix, 4)).checked_sub(PREFIX as u64) else {
            return Ok(());
        };
        let record = &mut dump.by_ref().take(len);
        match word(&prefix, 0) {
            LOAD => {
                let mut fields = [0; LOAD_FIELDS];
                if !fill(record, &mut fields)? {
                    return Ok(());
                }
                let name = name(record)?;
                line(list, long(&fields, 16), long(&fields, 24), &name)?;
                if names.len() < MANY {
                    names.insert(long(&fields, 32), name);
                }
            }
            MOVE => {
                let mut fields = [0; MOVE_FIELDS];
                if !fill(record, &mut fields)? {
                    return Ok(());
                }
                if let Some(name) = names.get(&long(&fields, 40)) {
                    line(list, long(&fields, 24), long(&fields, 32), name)?;
                }
            }
            CLOSE => return Ok(()),
            _ => {}
        }
        let left = record.limit();
        skip(dump, left)?;
    }
}

fn line(list: &mut impl Write, start: u64, size: u64, name: &str) -> io::Result<()> {
    writeln!(list, "{start:x} {size:x} {name}")
}

/// Returns the text up to a NUL, as one line.
fn name(record: &mut impl BufRead) -> io::Result<String> {
    let mut bytes = Vec::new();
    record.take(LONGEST_NAME as u64).read_until(0, &mut bytes)?;
    let text = String::from_utf8_lossy(bytes.strip_suffix(b"\0").unwrap_or(&bytes));
    Ok(text.replace(['\n', '\r'], " "))
}

/// Fills `bytes`; returns false if the file ends before.
fn fill(from: &mut impl Read, bytes: &mut [u8]) -> io::Result<bool> {
    match from.read_exact(bytes) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        result => result.map(|()| true),
    }
}

/// Skips `len` bytes, or as many as there are.
fn skip(from: &mut impl Read, len: u64) -> io::Result<()> {
    io::copy(&mut from.take(len), &mut io::sink()).map(drop)
}

fn word(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..).and_then(|rest| rest.first_chunk()).map_or(0, |word| u32::from_le_bytes(*word))
}

fn long(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..).and_then(|rest| rest.first_chunk()).map_or(0, |word| u64::from_le_bytes(*word))
}

#[cfg(test)]
mod tests {
    use super::{is_name_of, write_names};

    fn header() -> Vec<u8> {
        let mut bytes = Vec::new();
        for word in [0x4A69_5444_u32, 1, 40, 62, 0, 4711] {
            bytes.extend(word.to_le_bytes());
        }
        bytes.extend([0; 16]);
        bytes
    }

    fn record(kind: u32, contents: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        bytes.extend(kind.to_le_bytes());
        bytes.extend((16 + contents.len() as u32).to_le_bytes());
        bytes.extend(17_u64.to_le_bytes());
        bytes.extend(contents);
        bytes
    }

    fn load(start: u64, index: u64, name: &str, code: &[u8]) -> Vec<u8> {
        let mut contents = Vec::new();
        contents.extend([0; 8]);
        for long in [start, start, code.len() as u64, index] {
            contents.extend(long.to_le_bytes());
        }
        contents.extend(name.as_bytes());
        contents.push(0);
        contents.extend(code);
        record(0, &contents)
    }

    fn moved(index: u64, to: u64, len: u64) -> Vec<u8> {
        let mut contents = vec![0; 8];
        for long in [to, 0x1000, to, len, index] {
            contents.extend(long.to_le_bytes());
        }
        record(1, &contents)
    }

    fn names(dump: &[u8]) -> String {
        let mut list = Vec::new();
        write_names(&mut &*dump, &mut list).expect("memory can be read and written");
        String::from_utf8(list).expect("text")
    }

    fn dump() -> Vec<u8> {
        let lines = record(2, &[0xff; 64]);
        let unknown = record(77, b"what comes later");
        [
            header(),
            load(0x1000, 1, "first", &[0x90; 32]),
            lines,
            unknown,
            load(0x2000, 2, "second\nof two", &[]),
            moved(1, 0x3000, 32),
            moved(9, 0x4000, 32),
            record(3, &[]),
            load(0x5000, 3, "after its end", &[]),
        ]
        .concat()
    }

    #[test]
    fn functions_are_listed_as_they_come_and_move() {
        assert_eq!(names(&dump()), "1000 20 first\n2000 0 second of two\n3000 20 first\n");
    }

    #[test]
    fn of_any_bytes_some_names_are_read_or_none() {
        let whole = dump();
        let all = names(&whole);
        for len in 0..whole.len() {
            assert!(all.starts_with(&names(&whole[..len])) || len > 56, "cut after {len}");
        }
        for at in 0..whole.len() {
            for byte in [0, 1, 0x7f, 0x80, 0xff] {
                let mut damaged = whole.clone();
                damaged[at] = byte;
                assert!(names(&damaged).len() < 1 << 16, "{at} {byte}");
            }
        }
        // A record that says that it is shorter than its beginning, or longer than the file.
        for len in [0_u32, 15, 16, u32::MAX] {
            let mut damaged = whole.clone();
            damaged[44..48].copy_from_slice(&len.to_le_bytes());
            names(&damaged);
        }
        assert_eq!(names(b"nonsense"), "");
    }

    #[test]
    fn a_name_without_an_end_is_cut() {
        let long = load(0x1000, 1, &"x".repeat(100_000), &[0x90; 8]);
        let list = names(&[header(), long, load(0x2000, 2, "next", &[1])].concat());
        let lines: Vec<&str> = list.lines().collect();
        assert_eq!(lines.len(), 2);
        assert_eq!(lines[0].len(), "1000 8 ".len() + 4096);
        assert_eq!(lines[1], "2000 1 next");
    }

    #[test]
    fn a_dump_is_called_by_its_process() {
        assert!(is_name_of(4711, b"jit-4711.dump"));
        for other in [&b"jit-471.dump"[..], b"jit-4711.dump (deleted)", b"", b"perf-4711.map"] {
            assert!(!is_name_of(4711, other));
        }
    }
}
