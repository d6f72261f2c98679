//! What is loaded in another process: where its functions are, told from its memory.
//!
//! Only headers and the tables of dynamic symbols are read: files may have been replaced since, and mappings be large.

use std::fs;
use std::ops::Range;

use object::elf::{
    DT_GNU_HASH, DT_NULL, DT_STRSZ, DT_STRTAB, DT_SYMTAB, Dyn64, PT_DYNAMIC, PT_GNU_EH_FRAME,
    PT_LOAD, ProgramHeader64, Sym64,
};
use object::read::elf::{Dyn, ProgramHeader, Sym};
use object::{Endianness, pod};

use super::memory::Memory;

const ENDIAN: Endianness = Endianness::Little;
/// More is damaged.
const LARGEST_TABLE: u64 = 64 << 20;
const MOST_HEADERS: u16 = 256;

/// A loaded object.
pub(super) struct Object {
    /// As the kernel knows the file.
    pub(super) path: String,
    /// From its first mapping to the end of its last.
    pub(super) range: Range<u64>,
    symbols: Vec<(String, Range<u64>)>,
    /// Where the tables are that exceptions go by.
    pub(super) frames: Option<Frames>,
}

/// Where the tables of an object are that exceptions go by.
#[derive(Clone, Debug)]
pub(super) struct Frames {
    /// What addresses in the file differ by.
    pub(super) bias: u64,
    /// `.eh_frame_hdr`: an index.
    pub(super) index: Range<u64>,
    /// The end of the segment that it is in, and the tables as well.
    pub(super) end: u64,
}

impl Object {
    /// Where its functions of these names are; names may begin with what is given if that ends with `*`.
    pub(super) fn functions<'a>(
        &'a self,
        names: &'a [&str],
    ) -> impl Iterator<Item = Range<u64>> + 'a {
        let is_wanted = |name: &str| {
            names.iter().any(|wanted| match wanted.strip_suffix('*') {
                Some(start) => name.starts_with(start),
                None => name == *wanted,
            })
        };
        self.symbols.iter().filter(move |(name, _)| is_wanted(name)).map(|(_, range)| range.clone())
    }

    /// Where its variable of this name is.
    pub(super) fn data(&self, name: &str) -> Option<u64> {
        self.function(name)
    }

    /// Where one of them begins.
    pub(super) fn function(&self, name: &str) -> Option<u64> {
        self.functions(&[name]).next().map(|range| range.start)
    }
}

/// A line of `maps`.
struct Mapping {
    range: Range<u64>,
    is_executable: bool,
    offset: u64,
    /// Device and number of the file: another one may have the same path.
    file: (String, String),
    path: String,
}

fn mappings(pid: i32) -> Vec<Mapping> {
    let maps = fs::read(format!("/proc/{pid}/maps")).unwrap_or_default();
    String::from_utf8_lossy(&maps).lines().filter_map(mapping).collect()
}

fn mapping(line: &str) -> Option<Mapping> {
    let mut fields = line.splitn(6, ' ');
    let (start, end) = fields.next()?.split_once('-')?;
    let number = |text: &str| u64::from_str_radix(text, 16).ok();
    let range = number(start)?..number(end)?;
    let is_executable = fields.next()?.contains('x');
    let offset = number(fields.next()?)?;
    let file = (fields.next()?.to_owned(), fields.next()?.to_owned());
    let path = fields.next().unwrap_or("").trim_start().to_owned();
    Some(Mapping { range, is_executable, offset, file, path })
}

/// The mapping that an address is in.
pub(super) fn mapping_of(pid: i32, address: u64) -> Option<Range<u64>> {
    mappings(pid).into_iter().map(|mapping| mapping.range).find(|range| range.contains(&address))
}

/// The objects of a process that have code, but for those that none of the loader's tables tell of.
pub(super) fn loaded(pid: i32, memory: &Memory) -> Vec<Object> {
    let mappings = mappings(pid);
    let mut objects = Vec::new();
    for (i, first) in mappings.iter().enumerate() {
        if first.offset != 0 || !first.path.starts_with('/') {
            continue;
        }
        // (What the library has moved over pages of its own shows without a name.)
        let same =
            mappings[i..].iter().take_while(|next| next.file == first.file || next.path.is_empty());
        let same: Vec<&Mapping> = same.filter(|next| next.file == first.file).collect();
        if !same.iter().any(|mapping| mapping.is_executable)
            || same
                .iter()
                .skip(1)
                .any(|mapping| mapping.offset == 0 && mapping.range.start != first.range.end)
        {
            continue;
        }
        let end = same.last().map_or(first.range.end, |last| last.range.end);
        objects.extend(read(memory, first.range.start..end, &first.path));
    }
    objects
}

fn read(memory: &Memory, range: Range<u64>, path: &str) -> Option<Object> {
    const HEADER: usize = 64;
    let header = memory.read(range.start, HEADER);
    if !header.starts_with(b"\x7fELF\x02\x01") || header.len() < HEADER {
        return None;
    }
    let headers_at = u64::from_le_bytes(header[32..40].try_into().ok()?);
    let count = u16::from_le_bytes(header[56..58].try_into().ok()?).min(MOST_HEADERS);
    let bytes = memory.read(
        range.start + headers_at,
        usize::from(count) * size_of::<ProgramHeader64<Endianness>>(),
    );
    let (headers, _) =
        pod::slice_from_bytes::<ProgramHeader64<Endianness>>(&bytes, usize::from(count)).ok()?;
    let first = headers.iter().find(|header| header.p_type(ENDIAN) == PT_LOAD)?;
    let bias = range.start.wrapping_sub(first.p_vaddr(ENDIAN) & !0xfff);
    let dynamic = headers.iter().find(|header| header.p_type(ENDIAN) == PT_DYNAMIC);
    let symbols = dynamic.and_then(|dynamic| {
        let at = bias.wrapping_add(dynamic.p_vaddr(ENDIAN));
        symbols(memory, at, dynamic.p_memsz(ENDIAN).min(LARGEST_TABLE), bias)
    });
    let frames = frames(headers, bias);
    Some(Object { path: path.to_owned(), range, symbols: symbols.unwrap_or_default(), frames })
}

fn frames(headers: &[ProgramHeader64<Endianness>], bias: u64) -> Option<Frames> {
    let place = |header: &ProgramHeader64<Endianness>| {
        let start = bias.wrapping_add(header.p_vaddr(ENDIAN));
        start..start.saturating_add(header.p_memsz(ENDIAN))
    };
    let index = place(headers.iter().find(|header| header.p_type(ENDIAN) == PT_GNU_EH_FRAME)?);
    let mut segments = headers.iter().filter(|header| header.p_type(ENDIAN) == PT_LOAD).map(place);
    let end = segments.find(|segment| segment.contains(&index.start))?.end;
    Some(Frames { bias, index, end })
}

fn symbols(memory: &Memory, at: u64, len: u64, bias: u64) -> Option<Vec<(String, Range<u64>)>> {
    let bytes = memory.read(at, len as usize);
    let count = bytes.len() / size_of::<Dyn64<Endianness>>();
    let (entries, _) = pod::slice_from_bytes::<Dyn64<Endianness>>(&bytes, count).ok()?;
    let entry = |tag: i64| {
        let mut entries = entries.iter().take_while(|entry| entry.d_tag(ENDIAN) != DT_NULL);
        entries.find(|entry| entry.d_tag(ENDIAN) == tag).map(|entry| entry.d_val(ENDIAN))
    };
    // The loader adds the bias in place, but in the vDSO and some others.
    let address = |value: u64| if value < bias { value + bias } else { value };
    let table = address(entry(DT_SYMTAB)?);
    let names =
        memory.read(address(entry(DT_STRTAB)?), entry(DT_STRSZ)?.min(LARGEST_TABLE) as usize);
    let count = symbol_count(memory, address(entry(DT_GNU_HASH)?))?;
    let bytes = memory.read(table, count * size_of::<Sym64<Endianness>>());
    let count = bytes.len() / size_of::<Sym64<Endianness>>();
    let (symbols, _) = pod::slice_from_bytes::<Sym64<Endianness>>(&bytes, count).ok()?;
    let defined =
        symbols.iter().filter(|symbol| symbol.st_shndx(ENDIAN) != 0 && symbol.st_size(ENDIAN) > 0);
    let named = defined.filter_map(|symbol| {
        let name = names.get(symbol.st_name(ENDIAN) as usize..)?;
        let name = name.split(|&byte| byte == 0).next()?;
        let start = bias.wrapping_add(symbol.st_value(ENDIAN));
        Some((String::from_utf8_lossy(name).into_owned(), start..start + symbol.st_size(ENDIAN)))
    });
    Some(named.collect())
}

/// How many symbols a table has, by its hash table: the last bucket's chain ends with the last symbol.
fn symbol_count(memory: &Memory, hash: u64) -> Option<usize> {
    let word = |at: u64| Some(u32::from_le_bytes(memory.read(at, 4).try_into().ok()?));
    let (buckets, first, bloom) = (word(hash)?, word(hash + 4)?, word(hash + 8)?);
    let buckets_at = hash + 16 + u64::from(bloom) * 8;
    let bytes = memory.read(buckets_at, (u64::from(buckets) * 4).min(LARGEST_TABLE) as usize);
    let largest = bytes.as_chunks::<4>().0.iter().map(|word| u32::from_le_bytes(*word)).max()?;
    if largest < first {
        return Some(first as usize);
    }
    let chains = buckets_at + u64::from(buckets) * 4;
    (largest..).take(1 << 20).find_map(|symbol| {
        let at = chains + u64::from(symbol - first) * 4;
        (word(at)? & 1 == 1).then_some(symbol as usize + 1)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_functions_are_found() {
        let pid = std::process::id() as i32;
        let memory = Memory::open(pid).expect("own memory");
        let objects = loaded(pid, &memory);
        let libc = objects.iter().find(|it| it.path.contains("/libc.so.6")).expect("the C library");
        let address = libc::getpid as *const () as u64;
        assert_eq!(libc.function("getpid"), Some(address));
        assert!(libc.functions(&["pthread_*"]).count() > 50);
    }

    #[test]
    fn lines_of_maps_are_read() {
        let line = "7f00-8000 r-xp 00001000 08:01 42                  /a b/lib (deleted)";
        let mapping = mapping(line).expect("a mapping");
        assert_eq!((mapping.range, mapping.offset), (0x7f00..0x8000, 0x1000));
        assert_eq!((mapping.is_executable, &*mapping.path), (true, "/a b/lib (deleted)"));
    }
}
