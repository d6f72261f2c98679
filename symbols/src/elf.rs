//! What of an ELF file says who it is, and its symbol tables.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use object::{Object, ObjectSection, ReadCache, ReadRef};

use crate::go::{self, GoFunction};
use crate::refusal::Reason;
use crate::symtab::SymbolTable;

/// Largest symbol table unpacked from `.gnu_debugdata`, in bytes.
const MAX_MINI_LEN: u64 = 256 << 20;

/// What compressed sections may unpack to, as a multiple of their length, and how much any may: debug information unpacks to ten
/// times as much at most.
const MOST_UNPACKED: u64 = 256;
const UNPACKED_ANYWAY: u64 = 1 << 20;

/// An opened ELF file. Only what is asked for is read.
pub(crate) struct Elf {
    cache: ReadCache<File>,
    build_id: Vec<u8>,
}

impl Elf {
    /// Opens `path`; `None` if there is no such file.
    pub(crate) fn open(path: &Path) -> Option<Result<Self, Reason>> {
        // Opening a FIFO would wait for its writer.
        match path.metadata() {
            Ok(metadata) if !metadata.is_file() => {
                return Some(Err(Reason::Unreadable("is not a regular file".to_owned())));
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return None,
            Err(error) if error.kind() == std::io::ErrorKind::NotADirectory => return None,
            Err(error) => return Some(Err(Reason::Unreadable(error.to_string()))),
            Ok(_) => {}
        }
        let open = || -> Result<Self, Box<dyn std::error::Error>> {
            let mut elf = Self { cache: ReadCache::new(File::open(path)?), build_id: Vec::new() };
            elf.build_id = elf.parse()?.build_id()?.unwrap_or_default().to_vec();
            Ok(elf)
        };
        Some(open().map_err(|error| Reason::Unreadable(error.to_string())))
    }

    /// GNU build id, empty when there is none.
    pub(crate) fn build_id(&self) -> &[u8] {
        &self.build_id
    }

    pub(crate) fn has_debug_info(&self) -> bool {
        self.parse().is_ok_and(|file| file.has_debug_symbols())
    }

    /// A section that says that it unpacks to far more than debug information does: who reads it needs that much memory.
    pub(crate) fn overblown_section(&self) -> Option<String> {
        let file = self.parse().ok()?;
        let is_overblown = |section: &object::Section<'_, '_, &ReadCache<File>>| {
            section.compressed_file_range().is_ok_and(|range| {
                let most = range.compressed_size.saturating_mul(MOST_UNPACKED);
                range.uncompressed_size > most.max(UNPACKED_ANYWAY)
                    && range.uncompressed_size > range.compressed_size
            })
        };
        let section = file.sections().find(is_overblown)?;
        Some(String::from_utf8_lossy(section.name_bytes().ok()?).into_owned())
    }

    /// `.gnu_debuglink`: file name and CRC-32 of the separate debug file.
    pub(crate) fn debug_link(&self) -> Option<(PathBuf, u32)> {
        let (name, checksum) = self.parse().ok()?.gnu_debuglink().ok()??;
        Some((path(name), checksum))
    }

    /// `.gnu_debugaltlink`: path and build id of the file that holds what dwz moved out.
    pub(crate) fn alternate_link(&self) -> Option<(PathBuf, Vec<u8>)> {
        let (name, build_id) = self.parse().ok()?.gnu_debugaltlink().ok()??;
        Some((path(name), build_id.to_vec()))
    }

    /// Adds what is in its symbol tables, packed ones (`.gnu_debugdata`) too.
    pub(crate) fn add_symbols(&self, table: &mut SymbolTable) {
        let Ok(file) = self.parse() else { return };
        table.add(&file);
        table.add_go(go_functions(&file));
        let packed = file.section_by_name(".gnu_debugdata").and_then(|section| section.data().ok());
        let Some(packed) = packed else { return };
        let mut unpacked = Vec::new();
        let reader = lzma_rust2::XzReader::new(packed, true);
        // A table cut short or damaged gives fewer names, not wrong ones.
        if reader.take(MAX_MINI_LEN).read_to_end(&mut unpacked).is_ok()
            && let Ok(mini) = object::File::parse(&*unpacked)
        {
            table.add(&mini);
        }
    }

    pub(crate) fn parse(&self) -> object::Result<object::File<'_, &ReadCache<File>>> {
        object::File::parse(&self.cache)
    }
}

/// The functions in the table of Go's runtime, if there is one.
fn go_functions<'data, R: ReadRef<'data>>(file: &object::File<'data, R>) -> Vec<GoFunction> {
    let is_table = |name: object::Result<&str>| name.is_ok_and(|name| name.ends_with(go::SECTION));
    let Some(section) = file.sections().find(|section| is_table(section.name())) else {
        return Vec::new();
    };
    let place = section.address().wrapping_add(go::TEXT_AT);
    let text = || {
        let (_, relocation) = file.dynamic_relocations()?.find(|(at, _)| *at == place)?;
        Some(relocation.addend() as u64)
    };
    section.data().map(|table| go::functions(table, text())).unwrap_or_default()
}

fn path(bytes: &[u8]) -> PathBuf {
    PathBuf::from(OsStr::from_bytes(bytes))
}
