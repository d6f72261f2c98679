//! The kernel's types (BTF), reduced to those that a program needs.
//!
//! A kernel describes many types; Linux 6.18, for example, 126,572. Copying them all, and searching their names for
//! each type that a program uses, took the loader a third of the companion's start. So structures that the program
//! does not name, enumerations and functions are replaced by nameless forward declarations. Each type keeps its
//! number, by which the kernel knows it.
//!
//! The format: <https://docs.kernel.org/bpf/btf.html>.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io;
use std::ops::Range;

use aya::{Btf, EbpfLoader, Endianness};
use memmap2::MmapOptions;
use object::{Object, ObjectSection};

use crate::error::Error;

/// The file in which the kernel provides them.
pub const KERNEL: &str = "/sys/kernel/btf/vmlinux";

const MAGIC: u16 = 0xEB9F;
const HEADER_LEN: usize = 24;

const STRUCT: u32 = 4;
const UNION: u32 = 5;
/// The kind of a forward declaration.
const FORWARD: u32 = 7;

/// Reads the running kernel's types, and keeps the structures that `program` names.
///
/// # Errors
/// If there is no BTF or no permission, or if the format is unknown.
pub fn of_kernel(program: &[u8]) -> Result<Btf, Error> {
    let file = File::open(KERNEL).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => Error::NoBtf,
        io::ErrorKind::PermissionDenied => Error::NotPermitted,
        _ => Error::Btf(error),
    })?;
    // SAFETY: the kernel's own memory, which does not change. Linux 6.16 and later can map it; reading copies a page
    // at a time.
    let whole = match unsafe { MmapOptions::new().map_copy_read_only(&file) } {
        Ok(mapping) => fewer(&mapping, program),
        Err(_) => fewer(&fs::read(KERNEL).map_err(Error::Btf)?, program),
    };
    let unknown = || Error::Btf(io::Error::other(format!("{KERNEL} has another format")));
    let parse = |types: Vec<u8>| Btf::parse(&types, Endianness::default()).ok();
    whole.and_then(parse).ok_or_else(unknown)
}

/// Returns a loader with the types that programs are to be relocated with.
///
/// A new loader (of aya 0.14) first reads and copies all types of the kernel, unless it can't open files; so it is
/// kept from opening any.
pub fn loader(types: &Btf) -> EbpfLoader<'_> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the kernel fills in a structure of the right type.
    let is_known = unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) } == 0;
    let allow = |files| {
        let limit = libc::rlimit { rlim_cur: files, ..limit };
        if is_known {
            // SAFETY: the kernel reads it.
            unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) };
        }
    };
    allow(0);
    let mut loader = EbpfLoader::new();
    allow(limit.rlim_cur);
    loader.btf(Some(types));
    loader
}

/// Returns the types of `kernel` without the structures that `program`, an ELF file, does not name; `None` if a
/// format is unknown.
fn fewer(kernel: &[u8], program: &[u8]) -> Option<Vec<u8>> {
    let elf = object::File::parse(program).ok()?;
    let section = elf.section_by_name(".BTF")?;
    let own = Types::parse(section.data().ok()?)?;
    let names: HashSet<&[u8]> = own
        .clone()
        .filter(Type::is_structure)
        .map(|structure| own.name(&structure))
        .filter(|name| !name.is_empty())
        .collect();

    let types = Types::parse(kernel)?;
    let mut kept = Vec::with_capacity(kernel.len() / 2);
    let all = types.data;
    for one in types.clone() {
        let is_needed = match one.kind {
            STRUCT | UNION => one.name == 0 || names.contains(types.name(&one)),
            kind => has_no_list(kind),
        };
        if is_needed {
            kept.extend_from_slice(&all[one.bytes]);
        } else {
            let forward = [0, FORWARD << 24, 0];
            kept.extend(forward.iter().flat_map(|word: &u32| word.to_ne_bytes()));
        }
    }
    let strings = &kernel[types.strings.clone()];
    let lengths = [HEADER_LEN, 0, kept.len(), kept.len(), strings.len()];
    let mut whole = Vec::with_capacity(HEADER_LEN + kept.len() + strings.len());
    whole.extend_from_slice(&kernel[..4]);
    whole.extend(lengths.iter().flat_map(|&length| (length as u32).to_ne_bytes()));
    whole.extend_from_slice(&kept);
    whole.extend_from_slice(strings);
    Some(whole)
}

/// Whether a kind is a basic one that others are made of: numbers, pointers, arrays, type names and qualifiers.
fn has_no_list(kind: u32) -> bool {
    matches!(kind, 1..=3 | 7..=11 | 16 | 18)
}

/// A type; `bytes` is its place in the section of types.
struct Type {
    kind: u32,
    name: usize,
    bytes: Range<usize>,
}

impl Type {
    fn is_structure(&self) -> bool {
        matches!(self.kind, STRUCT | UNION)
    }
}

/// All types, in the order of their numbers.
#[derive(Clone)]
struct Types<'a> {
    data: &'a [u8],
    at: usize,
    whole: &'a [u8],
    strings: Range<usize>,
}

impl<'a> Types<'a> {
    /// Returns `None` if the data has another format, or an unknown kind of type.
    fn parse(whole: &'a [u8]) -> Option<Self> {
        let magic = whole.get(..2)?.try_into().ok()?;
        if u16::from_ne_bytes(magic) != MAGIC {
            return None;
        }
        let part = |offset_at, length_at| {
            let start = word(whole, 4)?.checked_add(word(whole, offset_at)?)?;
            let end = start.checked_add(word(whole, length_at)?)?;
            (end <= whole.len()).then_some(start..end)
        };
        let (types, strings) = (part(8, 12)?, part(16, 20)?);
        let this = Self { data: &whole[types], at: 0, whole, strings };
        let mut all = this.clone();
        all.by_ref().for_each(drop);
        (all.at == all.data.len()).then_some(this)
    }

    fn name(&self, kind: &Type) -> &'a [u8] {
        let strings = &self.whole[self.strings.clone()];
        let rest = strings.get(kind.name..).unwrap_or(&[]);
        rest.split(|&byte| byte == 0).next().unwrap_or(&[])
    }
}

impl Iterator for Types<'_> {
    type Item = Type;

    fn next(&mut self) -> Option<Type> {
        let info = word(self.data, self.at + 4)?;
        let (kind, elements) = ((info >> 24 & 0x1f) as u32, info & 0xffff);
        // The size beyond the first twelve bytes.
        let more = match kind {
            2 | 7..=12 | 16 | 18 => 0,
            1 | 14 | 17 => 4,
            3 => 12,
            6 | 13 => 8 * elements,
            STRUCT | UNION | 15 | 19 => 12 * elements,
            _ => return None,
        };
        let bytes = self.at..self.at + 12 + more;
        let name = word(self.data, self.at)?;
        if bytes.end > self.data.len() {
            return None;
        }
        self.at = bytes.end;
        Some(Type { kind, name, bytes })
    }
}

fn word(data: &[u8], at: usize) -> Option<usize> {
    let bytes = data.get(at..at + 4)?.try_into().ok()?;
    Some(u32::from_ne_bytes(bytes) as usize)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::{KERNEL, Types, fewer};
    use crate::program::OBJECT;

    #[test]
    fn types_keep_their_numbers_and_needed_ones_all() {
        // In containers it may be missing.
        let Ok(kernel) = fs::read(KERNEL) else { return };
        let some = fewer(&kernel, OBJECT).expect("the format is known");
        let (whole, fewer) = (Types::parse(&kernel), Types::parse(&some));
        let (whole, fewer) = (whole.expect("well-formed"), fewer.expect("well-formed"));
        assert_eq!(whole.clone().count(), fewer.clone().count());
        let find = |types: &Types<'_>, kind, name: &[u8]| {
            let number = types.clone().position(|one| one.kind == kind && types.name(&one) == name);
            number.map(|number| {
                let one = types.clone().nth(number).expect("found");
                (number, types.data[one.bytes].to_vec())
            })
        };
        let [structure, typedef] = [4, 8];
        for (kind, name) in [
            (structure, &b"task_struct"[..]),
            (structure, b"thread_struct"),
            (structure, b"linux_binprm"),
            (structure, b"pid"),
            (structure, b"cred"),
            (typedef, b"btf_trace_sys_enter"),
        ] {
            let found = find(&whole, kind, name);
            assert!(found.is_some());
            assert_eq!(found, find(&fewer, kind, name));
        }
        assert!(find(&whole, structure, b"timer_list").is_some());
        assert!(find(&fewer, structure, b"timer_list").is_none());
    }

    #[test]
    fn nonsense_is_refused() {
        assert!(fewer(b"", OBJECT).is_none());
        assert!(fewer(&[0x9f, 0xeb, 1, 0, 24, 0, 0, 0], OBJECT).is_none());
        let mut cut = vec![0x9f, 0xeb, 1, 0];
        for length in [24_u32, 0, 16, 16, 0] {
            cut.extend(length.to_ne_bytes());
        }
        // A structure with more members than there are bytes.
        for word in [0, 4 << 24 | 9, 0, 0_u32] {
            cut.extend(word.to_ne_bytes());
        }
        assert!(fewer(&cut, OBJECT).is_none());
    }
}
