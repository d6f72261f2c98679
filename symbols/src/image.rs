//! What a loaded object holds at an address, from its file: data, and pointers that the dynamic
//! linker fills in.

use std::cell::OnceCell;
use std::collections::HashMap;

use object::elf::{PF_X, R_X86_64_64, R_X86_64_GLOB_DAT, R_X86_64_RELATIVE};
use object::{
    Object, ObjectSegment, ObjectSymbol, ObjectSymbolTable, RelocationFlags, RelocationTarget,
    SegmentFlags,
};

use crate::elf::Elf;

/// Longest C string that is read, in bytes: names of types can be long.
const LONGEST_STRING: u64 = 64 * 1024;

/// The contents of an object's file, by address.
pub(crate) struct Image {
    pub(crate) elf: Elf,
    relocated: OnceCell<HashMap<u64, Pointer>>,
    vtables: OnceCell<HashMap<u64, String>>,
}

/// What a word of an object points to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Pointer {
    /// An address in the same file.
    Svma(u64),
    /// A symbol that may be another object's, and what is added to it.
    Symbol(String, i64),
}

impl Pointer {
    pub(crate) fn svma(&self) -> Option<u64> {
        match self {
            Self::Svma(svma) => Some(*svma),
            Self::Symbol(..) => None,
        }
    }
}

impl Image {
    pub(crate) fn new(elf: Elf) -> Self {
        Self { elf, relocated: OnceCell::new(), vtables: OnceCell::new() }
    }

    /// Bytes from `svma` on that are in the file: `len` of them, or as many as there are.
    fn read<T>(&self, svma: u64, len: u64, each: impl FnOnce(&[u8]) -> T) -> Option<T> {
        let file = self.elf.parse().ok()?;
        let segment = file.segments().find(|segment| {
            (segment.address()..segment.address().saturating_add(segment.size())).contains(&svma)
        })?;
        let data = segment.data().ok()?;
        let start = usize::try_from(svma - segment.address()).ok()?;
        let rest = data.get(start..)?;
        let len = usize::try_from(len).unwrap_or(usize::MAX).min(rest.len());
        Some(each(&rest[..len]))
    }

    /// `len` bytes at `svma`, or as many as the file has there.
    pub(crate) fn bytes(&self, svma: u64, len: u64) -> Vec<u8> {
        self.read(svma, len, <[u8]>::to_vec).unwrap_or_default()
    }

    /// The word at `svma` as it is in the file.
    pub(crate) fn word(&self, svma: u64) -> Option<u64> {
        self.read(svma, 8, |bytes| Some(u64::from_le_bytes(bytes.try_into().ok()?)))?
    }

    /// The NUL-terminated text at `svma`.
    pub(crate) fn text(&self, svma: u64) -> Option<String> {
        self.read(svma, LONGEST_STRING, |bytes| {
            let len = bytes.iter().position(|&byte| byte == 0)?;
            String::from_utf8(bytes[..len].to_vec()).ok()
        })?
    }

    /// Where the word at `svma` points once the object is loaded; `None` for a null pointer.
    pub(crate) fn pointer(&self, svma: u64) -> Option<Pointer> {
        if let Some(found) = self.relocated().get(&svma) {
            return Some(found.clone());
        }
        // An executable at a fixed address has no relocation for it; with packed relocations
        // (DT_RELR), the address in the file is in its place.
        self.word(svma).filter(|&value| value != 0).map(Pointer::Svma)
    }

    /// Places of all pointers to `target` that are relocated.
    pub(crate) fn pointers_to(&self, target: u64) -> Vec<u64> {
        let wanted = Pointer::Svma(target);
        self.relocated().iter().filter(|(_, to)| **to == wanted).map(|(&at, _)| at).collect()
    }

    /// The address of what is at `offset` in the file, if it is loaded.
    pub(crate) fn svma_at(&self, offset: u64) -> Option<u64> {
        let file = self.elf.parse().ok()?;
        file.segments().find_map(|segment| {
            let (start, len) = segment.file_range();
            let behind = offset.checked_sub(start).filter(|&behind| behind < len)?;
            segment.address().checked_add(behind)
        })
    }

    /// Whether there is code at `svma`.
    pub(crate) fn is_code(&self, svma: u64) -> bool {
        let Ok(file) = self.elf.parse() else { return false };
        file.segments().any(|segment| {
            let is_executable = matches!(segment.flags(),
                SegmentFlags::Elf { p_flags, .. } if p_flags.0 & PF_X.0 != 0);
            let range = segment.address()..segment.address().saturating_add(segment.size());
            is_executable && range.contains(&svma)
        })
    }

    /// Name of the class, mangled as a symbol (`_ZTV…`), whose table of virtual functions is at
    /// `svma`.
    pub(crate) fn vtable(&self, svma: u64) -> Option<&str> {
        self.vtables.get_or_init(|| self.read_vtables()).get(&svma).map(String::as_str)
    }

    fn read_vtables(&self) -> HashMap<u64, String> {
        let Ok(file) = self.elf.parse() else { return HashMap::new() };
        let symbols = file.symbols().chain(file.dynamic_symbols());
        let named = symbols.filter_map(|symbol| {
            let name = symbol.name().ok().filter(|name| name.starts_with("_ZTV"))?;
            (!symbol.is_undefined()).then(|| (symbol.address(), name.to_owned()))
        });
        named.collect()
    }

    fn relocated(&self) -> &HashMap<u64, Pointer> {
        self.relocated.get_or_init(|| self.read_relocations())
    }

    fn read_relocations(&self) -> HashMap<u64, Pointer> {
        let Ok(file) = self.elf.parse() else { return HashMap::new() };
        let Some(relocations) = file.dynamic_relocations() else { return HashMap::new() };
        let symbols = file.dynamic_symbol_table();
        let pointer = |relocation: &object::Relocation| {
            let RelocationFlags::Elf { r_type } = relocation.flags() else { return None };
            match (r_type, relocation.target()) {
                (R_X86_64_RELATIVE, _) => Some(Pointer::Svma(relocation.addend() as u64)),
                (R_X86_64_64 | R_X86_64_GLOB_DAT, RelocationTarget::Symbol(index)) => {
                    let symbol = symbols.as_ref()?.symbol_by_index(index).ok()?;
                    if symbol.is_undefined() {
                        let name = symbol.name().ok()?.to_owned();
                        return Some(Pointer::Symbol(name, relocation.addend()));
                    }
                    // Another object's definition may take its place, but it is the same one: a
                    // name means one thing in a program.
                    let svma = symbol.address().wrapping_add_signed(relocation.addend());
                    Some(Pointer::Svma(svma))
                }
                _ => None,
            }
        };
        relocations.filter_map(|(at, relocation)| Some((at, pointer(&relocation)?))).collect()
    }
}
