//! Reads the ELF structures of a loaded object in place.
//!
//! The dynamic linker has mapped and used all of it before, so it is trusted as far as the linker trusts it; sizes
//! that the linker does not check are bounded here.

mod auxiliary;
mod versions;

use core::ptr;

pub(crate) use self::auxiliary::Auxiliary;
pub(crate) use self::versions::{HIDDEN, ImportVersions, Version};
use crate::sys;
use chase_logic::text::c_bytes;

/// A program header.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct ProgramHeader {
    pub(crate) kind: u32,
    pub(crate) flags: u32,
    pub(crate) offset: u64,
    pub(crate) vaddr: u64,
    pub(crate) paddr: u64,
    pub(crate) filesz: u64,
    pub(crate) memsz: u64,
    pub(crate) align: u64,
}

/// A dynamic symbol.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Symbol {
    pub(crate) name: u32,
    pub(crate) info: u8,
    pub(crate) other: u8,
    pub(crate) section: u16,
    pub(crate) value: u64,
    pub(crate) size: u64,
}

impl Symbol {
    pub(crate) fn kind(&self) -> u8 {
        self.info & 0xf
    }

    pub(crate) fn binding(&self) -> u8 {
        self.info >> 4
    }
}

/// A relocation with addend.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Relocation {
    pub(crate) offset: u64,
    pub(crate) info: u64,
    pub(crate) addend: i64,
}

impl Relocation {
    pub(crate) fn kind(&self) -> u32 {
        self.info as u32
    }

    pub(crate) fn symbol(&self) -> u32 {
        (self.info >> 32) as u32
    }
}

#[repr(C)]
struct Dynamic {
    tag: i64,
    value: u64,
}

pub(crate) const PT_LOAD: u32 = 1;
const PT_DYNAMIC: u32 = 2;
const PT_NOTE: u32 = 4;
const PT_PHDR: u32 = 6;
pub(crate) const PT_GNU_RELRO: u32 = 0x6474_e552;
pub(crate) const PF_X: u32 = 1;
pub(crate) const PF_W: u32 = 2;
pub(crate) const PF_R: u32 = 4;

pub(crate) const STT_OBJECT: u8 = 1;
pub(crate) const STT_TLS: u8 = 6;
pub(crate) const STT_GNU_IFUNC: u8 = 10;
pub(crate) const STB_LOCAL: u8 = 0;
pub(crate) const STB_WEAK: u8 = 2;
pub(crate) const SHN_UNDEF: u16 = 0;

pub(crate) const R_X86_64_GLOB_DAT: u32 = 6;
pub(crate) const R_X86_64_JUMP_SLOT: u32 = 7;

const DT_NULL: i64 = 0;
const DT_NEEDED: i64 = 1;
const DT_PLTRELSZ: i64 = 2;
const DT_HASH: i64 = 4;
const DT_STRTAB: i64 = 5;
const DT_SYMTAB: i64 = 6;
const DT_RELA: i64 = 7;
const DT_RELASZ: i64 = 8;
const DT_RELACOUNT: i64 = 0x6fff_fff9;
const DT_STRSZ: i64 = 10;
const DT_SONAME: i64 = 14;
const DT_RPATH: i64 = 15;
const DT_SYMBOLIC: i64 = 16;
const DT_DEBUG: i64 = 21;
const DT_JMPREL: i64 = 23;
const DT_RUNPATH: i64 = 29;
const DT_FLAGS: i64 = 30;
const DT_GNU_HASH: i64 = 0x6fff_fef5;
const DT_VERSYM: i64 = 0x6fff_fff0;
const DT_VERDEF: i64 = 0x6fff_fffc;
const DT_VERNEED: i64 = 0x6fff_fffe;
const DF_SYMBOLIC: u64 = 2;

/// The tables of an object, as addresses in the process (0: the object has none).
#[derive(Clone, Copy, Default)]
pub(crate) struct Image {
    pub(crate) bias: usize,
    headers: usize,
    header_count: usize,
    dynamic: usize,
    pub(crate) strings: usize,
    strings_len: usize,
    pub(crate) symbols: usize,
    pub(crate) gnu_hash: usize,
    pub(crate) sysv_hash: usize,
    pub(crate) versions: usize,
    pub(crate) version_definitions: usize,
    version_needs: usize,
    rela: usize,
    rela_len: usize,
    /// How many relocations at the start of that table refer to no symbol.
    relative: usize,
    jump_rela: usize,
    jump_rela_len: usize,
    soname: usize,
    debug: usize,
    pub(crate) symbolic: bool,
    pub(crate) has_rpath: bool,
    pub(crate) has_runpath: bool,
    /// Address range from the start of the first segment to the end of the last.
    pub(crate) start: usize,
    pub(crate) end: usize,
    relro: (usize, usize),
}

impl Image {
    /// Reads the tables of the object that is loaded at `bias` and has its program headers at `headers`. Returns
    /// `None` if it has no dynamic section with symbols.
    ///
    /// # Safety
    /// `headers` are the `count` program headers of an object that stays loaded.
    pub(crate) unsafe fn new(bias: usize, headers: usize, count: usize) -> Option<Self> {
        let mut image =
            Self { bias, headers, header_count: count, start: usize::MAX, ..Self::default() };
        for header in image.program_headers() {
            let at = bias.wrapping_add(header.vaddr as usize);
            match header.kind {
                PT_LOAD => {
                    image.start = image.start.min(at & !4095);
                    image.end = image.end.max(at + header.memsz as usize);
                }
                PT_DYNAMIC => image.dynamic = at,
                PT_GNU_RELRO => image.relro = (at & !4095, (at + header.memsz as usize) & !4095),
                _ => {}
            }
        }
        if image.dynamic == 0 {
            return None;
        }
        image.read_dynamic();
        (image.symbols != 0 && image.strings != 0).then_some(image)
    }

    /// Reads the tables of the object whose ELF header is at `header`. Returns `None` as [`Self::new`] does, or if it
    /// is no 64-bit header.
    ///
    /// # Safety
    /// `header` is mapped and belongs to an object that stays loaded.
    pub(crate) unsafe fn at_header(bias: usize, header: usize) -> Option<Self> {
        // SAFETY: the caller vouches for the page; the fields of an ELF-64 header are in it.
        unsafe {
            if *(header as *const [u8; 5]) != *b"\x7fELF\x02" {
                return None;
            }
            let offset = ((header + 32) as *const u64).read() as usize;
            let count = ((header + 56) as *const u16).read() as usize;
            Self::new(bias, header + offset, count)
        }
    }

    pub(crate) fn program_headers(&self) -> &'static [ProgramHeader] {
        // SAFETY: vouched for in `new`.
        unsafe {
            core::slice::from_raw_parts(
                ptr::with_exposed_provenance(self.headers),
                self.header_count,
            )
        }
    }

    fn dynamic_entries(&self) -> impl Iterator<Item = (i64, u64)> + use<> {
        let mut at: *const Dynamic = ptr::with_exposed_provenance(self.dynamic);
        core::iter::from_fn(move || {
            // SAFETY: the dynamic section ends with DT_NULL, which is not passed.
            let entry = unsafe { &*at };
            if entry.tag == DT_NULL {
                return None;
            }
            at = at.wrapping_add(1);
            Some((entry.tag, entry.value))
        })
    }

    fn read_dynamic(&mut self) {
        let bias = self.bias;
        // The dynamic linker adds the bias in place, but not where the section is read-only.
        let address = |value: u64| {
            let value = value as usize;
            if value < bias { bias + value } else { value }
        };
        let mut soname = None;
        for (tag, value) in self.dynamic_entries() {
            match tag {
                DT_PLTRELSZ => self.jump_rela_len = value as usize,
                DT_HASH => self.sysv_hash = address(value),
                DT_STRTAB => self.strings = address(value),
                DT_STRSZ => self.strings_len = value as usize,
                DT_SYMTAB => self.symbols = address(value),
                DT_RELA => self.rela = address(value),
                DT_RELASZ => self.rela_len = value as usize,
                DT_RELACOUNT => self.relative = value as usize,
                DT_SONAME => soname = Some(value as usize),
                DT_RPATH => self.has_rpath = true,
                DT_RUNPATH => self.has_runpath = true,
                DT_SYMBOLIC => self.symbolic = true,
                DT_FLAGS => self.symbolic |= value & DF_SYMBOLIC != 0,
                DT_DEBUG => self.debug = value as usize,
                DT_JMPREL => self.jump_rela = address(value),
                DT_GNU_HASH => self.gnu_hash = address(value),
                DT_VERSYM => self.versions = address(value),
                DT_VERDEF => self.version_definitions = address(value),
                DT_VERNEED => self.version_needs = address(value),
                _ => {}
            }
        }
        self.soname = soname.map_or(0, |offset| self.strings + offset);
    }

    /// Returns the value of `DT_DEBUG` of the executable: where the dynamic linker's list of objects is.
    pub(crate) fn debug_address(&self) -> usize {
        self.debug
    }

    pub(crate) fn dynamic_address(&self) -> usize {
        self.dynamic
    }

    pub(crate) fn soname(&self) -> &'static [u8] {
        c_bytes(self.soname)
    }

    /// Returns the names of the objects that this one needs, in order.
    pub(crate) fn needed(&self) -> impl Iterator<Item = &'static [u8]> + use<> {
        let strings = self.strings;
        self.dynamic_entries()
            .filter(|&(tag, _)| tag == DT_NEEDED)
            .map(move |(_, value)| c_bytes(strings + value as usize))
    }

    /// Returns the relocations of both tables, except for those at the start of the second that refer to no symbol,
    /// and except for an incomplete last one.
    pub(crate) fn relocations(&self) -> impl Iterator<Item = &'static Relocation> + use<> {
        let others = self.table(self.rela, self.rela_len).iter().skip(self.relative);
        self.jump_slots().iter().chain(others)
    }

    pub(crate) fn jump_slots(&self) -> &'static [Relocation] {
        self.table(self.jump_rela, self.jump_rela_len)
    }

    /// Returns the number of functions called through entries that are bound at their first call; 0 if the dynamic
    /// linker has bound all already.
    pub(crate) fn unbound(&self) -> usize {
        let entries = self.jump_slots();
        let is_unbound = entries.first().is_some_and(|relocation| {
            let got = self.bias.wrapping_add(relocation.offset as usize);
            // SAFETY: the dynamic linker has written this entry, or will.
            let bound = unsafe { ptr::with_exposed_provenance::<usize>(got).read_volatile() };
            self.contains(bound)
        });
        if is_unbound { entries.len() } else { 0 }
    }

    fn table(&self, at: usize, len: usize) -> &'static [Relocation] {
        if at == 0 {
            return &[];
        }
        // SAFETY: the dynamic linker has applied this table.
        unsafe {
            core::slice::from_raw_parts(
                ptr::with_exposed_provenance(at),
                len / size_of::<Relocation>(),
            )
        }
    }

    pub(crate) fn symbol(&self, index: u32) -> &'static Symbol {
        // SAFETY: the index comes from this object's relocations or hash table.
        unsafe { &*ptr::with_exposed_provenance::<Symbol>(self.symbols).add(index as usize) }
    }

    pub(crate) fn name(&self, symbol: &Symbol) -> &'static [u8] {
        c_bytes(self.name_address(symbol))
    }

    pub(crate) fn name_address(&self, symbol: &Symbol) -> usize {
        self.strings + symbol.name as usize
    }

    /// Whether `name` is the symbol's name.
    pub(crate) fn has_name(&self, symbol: &Symbol, name: &[u8]) -> bool {
        let offset = symbol.name as usize;
        if offset + name.len() >= self.strings_len {
            return self.name(symbol) == name;
        }
        // SAFETY: the bytes of the name, and one more, are in the string table.
        unsafe {
            let at: *const u8 = ptr::with_exposed_provenance(self.strings + offset);
            *at.add(name.len()) == 0 && core::slice::from_raw_parts(at, name.len()) == name
        }
    }

    /// Whether `address` is in one of the object's segments, or between them.
    pub(crate) fn contains(&self, address: usize) -> bool {
        (self.start..self.end).contains(&address)
    }

    /// Whether the page at `address` is read-only after relocation.
    pub(crate) fn is_relro(&self, address: usize) -> bool {
        (self.relro.0..self.relro.1).contains(&address)
    }

    /// Whether the dynamic linker has finished relocating the object. Its last step is to make the pages read-only
    /// that only relocations write. Objects without such pages count as relocated; the caller has to look at their
    /// entries.
    pub(crate) fn is_relocated(&self) -> bool {
        let len = self.relro.1 - self.relro.0;
        let writes = || sys::advise(self.relro.0 as *mut u8, len, sys::MADV_POPULATE_WRITE);
        len == 0 || writes().is_err()
    }

    /// Sets the protection of the pages that are read-only after relocation.
    pub(crate) fn protect_relro(&self, protection: i32) -> bool {
        sys::protect(self.relro.0, self.relro.1 - self.relro.0, protection).is_ok()
    }

    /// Whether `address` is in an executable segment.
    pub(crate) fn executes(&self, address: usize) -> bool {
        self.executable_ranges().any(|(start, end)| (start..end).contains(&address))
    }

    /// Returns the address ranges of executable segments that are readable, too.
    pub(crate) fn executable_ranges(&self) -> impl Iterator<Item = (usize, usize)> + use<> {
        let bias = self.bias;
        self.program_headers()
            .iter()
            .filter(|header| header.kind == PT_LOAD && header.flags & (PF_X | PF_R) == PF_X | PF_R)
            .map(move |header| {
                let start = bias.wrapping_add(header.vaddr as usize);
                (start, start + header.filesz as usize)
            })
    }

    /// Returns the GNU build id; empty if the object has none.
    pub(crate) fn build_id(&self) -> &'static [u8] {
        const NT_GNU_BUILD_ID: u32 = 3;
        self.note(NT_GNU_BUILD_ID, b"GNU\0").unwrap_or(&[])
    }

    /// Returns the contents of the note with this kind and name, which is padded with NULs.
    pub(crate) fn note(&self, kind: u32, name: &[u8]) -> Option<&'static [u8]> {
        for header in self.program_headers().iter().filter(|header| header.kind == PT_NOTE) {
            let mut at = self.bias.wrapping_add(header.vaddr as usize);
            let end = at + header.memsz as usize;
            while at + 12 <= end {
                // SAFETY: the note segment is loaded, and `at` is inside it.
                let [name_len, len, found] = unsafe { *(at as *const [u32; 3]) };
                let name_end = at + 12 + (name_len as usize).next_multiple_of(4);
                let next = name_end + (len as usize).next_multiple_of(4);
                if next > end {
                    break;
                }
                // SAFETY: name and contents end before `end`.
                unsafe {
                    let bytes = |at: usize, len| core::slice::from_raw_parts(at as *const u8, len);
                    if found == kind && bytes(at + 12, name_end - at - 12) == name {
                        return Some(bytes(name_end, len as usize));
                    }
                }
                at = next;
            }
        }
        None
    }
}

/// Returns the load bias of the executable, computed from its program headers.
pub(crate) fn executable_bias(headers: &[ProgramHeader], at: usize) -> usize {
    headers
        .iter()
        .find(|header| header.kind == PT_PHDR)
        .map_or(0, |header| at.wrapping_sub(header.vaddr as usize))
}
