//! Reads the ELF structures of a loaded object in place.
//!
//! The dynamic linker has mapped and used all of it before, so it is trusted as far as the linker trusts it; sizes
//! that the linker does not check are bounded here.

mod format;
mod versions;

use core::ops::Range;
use core::ptr;

use self::format::{
    DF_SYMBOLIC, DT_DEBUG, DT_FLAGS, DT_GNU_HASH, DT_HASH, DT_JMPREL, DT_NEEDED, DT_NULL,
    DT_PLTRELSZ, DT_RELA, DT_RELACOUNT, DT_RELASZ, DT_RPATH, DT_RUNPATH, DT_SONAME, DT_STRSZ,
    DT_STRTAB, DT_SYMBOLIC, DT_SYMTAB, DT_VERDEF, DT_VERNEED, DT_VERSYM, Dynamic, PT_DYNAMIC,
    PT_NOTE, PT_PHDR,
};
pub use self::format::{
    PF_R, PF_W, PF_X, PT_GNU_RELRO, PT_LOAD, ProgramHeader, R_X86_64_GLOB_DAT, R_X86_64_JUMP_SLOT,
    Relocation, SHN_UNDEF, STB_LOCAL, STB_WEAK, STT_GNU_IFUNC, STT_OBJECT, STT_TLS, Symbol,
};
pub(crate) use self::versions::HIDDEN;
pub use self::versions::{ImportVersions, Version};
use crate::text::c_bytes;

/// The tables of an object, as addresses in the process (0: the object has none).
#[derive(Clone, Copy, Debug)]
pub struct Image {
    bias: usize,
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
    symbolic: bool,
    has_rpath: bool,
    has_runpath: bool,
    /// Address range from the start of the first segment to the end of the last.
    start: usize,
    end: usize,
    relro: (usize, usize),
}

impl Image {
    const NONE: Self = Self {
        bias: 0,
        headers: 0,
        header_count: 0,
        dynamic: 0,
        strings: 0,
        strings_len: 0,
        symbols: 0,
        gnu_hash: 0,
        sysv_hash: 0,
        versions: 0,
        version_definitions: 0,
        version_needs: 0,
        rela: 0,
        rela_len: 0,
        relative: 0,
        jump_rela: 0,
        jump_rela_len: 0,
        soname: 0,
        debug: 0,
        symbolic: false,
        has_rpath: false,
        has_runpath: false,
        start: usize::MAX,
        end: 0,
        relro: (0, 0),
    };

    /// Reads the tables of the object that is loaded at `bias` and has its program headers at `headers`. Returns
    /// `None` if it has no dynamic section with symbols.
    ///
    /// # Safety
    /// `headers` are the `count` program headers of an object that stays loaded.
    pub unsafe fn new(bias: usize, headers: usize, count: usize) -> Option<Self> {
        let mut image = Self::NONE;
        (image.bias, image.headers, image.header_count) = (bias, headers, count);
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
    pub unsafe fn at_header(bias: usize, header: usize) -> Option<Self> {
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

    /// Returns the difference between addresses in the process and in the file.
    #[must_use]
    pub fn bias(&self) -> usize {
        self.bias
    }

    /// Returns the address range from the start of the first segment to the end of the last.
    #[must_use]
    pub fn range(&self) -> Range<usize> {
        self.start..self.end
    }

    /// Whether it looks in itself first for what it needs.
    #[must_use]
    pub fn is_symbolic(&self) -> bool {
        self.symbolic
    }

    /// Whether it has directories of its own for what it needs: `DT_RPATH`, and `DT_RUNPATH`.
    #[must_use]
    pub fn has_paths(&self) -> (bool, bool) {
        (self.has_rpath, self.has_runpath)
    }

    /// Returns the program headers.
    #[must_use]
    pub fn program_headers(&self) -> &'static [ProgramHeader] {
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
    #[must_use]
    pub fn debug_address(&self) -> usize {
        self.debug
    }

    /// Returns where its dynamic section is.
    #[must_use]
    pub fn dynamic_address(&self) -> usize {
        self.dynamic
    }

    /// Returns the name by which others need it; empty if it has none.
    #[must_use]
    pub fn soname(&self) -> &'static [u8] {
        c_bytes(self.soname)
    }

    /// Returns the names of the objects that this one needs, in order.
    pub fn needed(&self) -> impl Iterator<Item = &'static [u8]> + use<> {
        let strings = self.strings;
        self.dynamic_entries()
            .filter(|&(tag, _)| tag == DT_NEEDED)
            .map(move |(_, value)| c_bytes(strings + value as usize))
    }

    /// Returns the relocations of both tables, except for those at the start of the second that refer to no symbol,
    /// and except for an incomplete last one.
    pub fn relocations(&self) -> impl Iterator<Item = &'static Relocation> + use<> {
        let others = self.table(self.rela, self.rela_len).iter().skip(self.relative);
        self.jump_slots().iter().chain(others)
    }

    /// Returns the relocations of the entries through which functions are called.
    #[must_use]
    pub fn jump_slots(&self) -> &'static [Relocation] {
        self.table(self.jump_rela, self.jump_rela_len)
    }

    /// Returns the number of functions called through entries that are bound at their first call; 0 if the dynamic
    /// linker has bound all already.
    pub fn unbound(&self) -> usize {
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

    /// Returns symbol number `index`, which comes from this object's tables.
    #[must_use]
    pub fn symbol(&self, index: u32) -> &'static Symbol {
        // SAFETY: the index comes from this object's relocations or hash table.
        unsafe { &*ptr::with_exposed_provenance::<Symbol>(self.symbols).add(index as usize) }
    }

    /// Returns the symbol's name.
    #[must_use]
    pub fn name(&self, symbol: &Symbol) -> &'static [u8] {
        c_bytes(self.name_address(symbol))
    }

    /// Returns where that name is.
    #[must_use]
    pub fn name_address(&self, symbol: &Symbol) -> usize {
        self.strings + symbol.name as usize
    }

    /// Whether `name` is the symbol's name.
    pub fn has_name(&self, symbol: &Symbol, name: &[u8]) -> bool {
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
    pub fn contains(&self, address: usize) -> bool {
        (self.start..self.end).contains(&address)
    }

    /// Whether the page at `address` is read-only after relocation.
    pub fn is_relro(&self, address: usize) -> bool {
        (self.relro.0..self.relro.1).contains(&address)
    }

    /// Returns where the pages begin and end that are read-only after relocation; twice the same address if there are none.
    #[must_use]
    pub fn relro(&self) -> (usize, usize) {
        self.relro
    }

    /// Whether `address` is in an executable segment.
    pub fn executes(&self, address: usize) -> bool {
        self.executable_ranges().any(|(start, end)| (start..end).contains(&address))
    }

    /// Returns the address ranges of executable segments that are readable, too.
    pub fn executable_ranges(&self) -> impl Iterator<Item = (usize, usize)> + use<> {
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
    pub fn build_id(&self) -> &'static [u8] {
        const NT_GNU_BUILD_ID: u32 = 3;
        self.note(NT_GNU_BUILD_ID, b"GNU\0").unwrap_or(&[])
    }

    /// Returns the contents of the note with this kind and name, which is padded with NULs.
    pub fn note(&self, kind: u32, name: &[u8]) -> Option<&'static [u8]> {
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
pub fn executable_bias(headers: &[ProgramHeader], at: usize) -> usize {
    headers
        .iter()
        .find(|header| header.kind == PT_PHDR)
        .map_or(0, |header| at.wrapping_sub(header.vaddr as usize))
}
