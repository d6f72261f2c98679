//! The versions of symbols: which one an import asks for, and what an object defines.

use core::ptr;

use super::Image;
use crate::text::c_bytes;

/// A version that an object asks for.
#[derive(Clone, Copy)]
pub struct Version {
    /// Its name.
    pub name: &'static [u8],
    /// The System V hash of that.
    pub hash: u32,
}

/// Bit in a symbol's version number: only a request for this very version finds the symbol.
pub(crate) const HIDDEN: u16 = 0x8000;
/// The number of cached versions.
const KEPT: usize = 8;

/// The versions that an object's imports ask for. There are few of them, but each takes a search, so the latest ones
/// are cached.
pub struct ImportVersions<'a> {
    image: &'a Image,
    known: [Option<(u16, Option<Version>)>; KEPT],
}

impl<'a> ImportVersions<'a> {
    /// Returns those of an object, none of which has been looked for yet.
    #[must_use]
    pub fn new(image: &'a Image) -> Self {
        Self { image, known: [None; KEPT] }
    }

    /// Returns the version that the undefined symbol with this index asks for.
    pub fn wanted(&mut self, index: u32) -> Option<Version> {
        let number = self.image.version_number(index)? & !HIDDEN;
        let place = self.known.get_mut(usize::from(number) % KEPT)?;
        match *place {
            Some((known, version)) if known == number => version,
            _ => {
                let version = self.image.wanted_version(number);
                *place = Some((number, version));
                version
            }
        }
    }
}

impl Image {
    /// Returns the number of a symbol's version, including the hidden bit; `None` if the object has no versions.
    pub fn version_number(&self, index: u32) -> Option<u16> {
        if self.versions == 0 {
            return None;
        }
        // SAFETY: the table has an entry for each symbol.
        Some(unsafe { *ptr::with_exposed_provenance::<u16>(self.versions).add(index as usize) })
    }

    /// Returns the version that undefined symbols with this number ask for.
    fn wanted_version(&self, wanted: u16) -> Option<Version> {
        let mut need = self.version_needs;
        while need != 0 && wanted > 1 {
            // SAFETY: the chain of needs is the dynamic linker's; offsets of 0 end it.
            unsafe {
                let auxiliary_offset = ptr::read((need + 8) as *const u32);
                let next = ptr::read((need + 12) as *const u32);
                let mut auxiliary = need + auxiliary_offset as usize;
                loop {
                    let hash = ptr::read(auxiliary as *const u32);
                    let number = ptr::read((auxiliary + 6) as *const u16) & 0x7fff;
                    let name = ptr::read((auxiliary + 8) as *const u32);
                    if number == wanted {
                        let name = c_bytes(self.strings + name as usize);
                        return Some(Version { name, hash });
                    }
                    match ptr::read((auxiliary + 12) as *const u32) {
                        0 => break,
                        offset => auxiliary += offset as usize,
                    }
                }
                need = if next == 0 { 0 } else { need + next as usize };
            }
        }
        self.defined_version(wanted)
    }

    /// Returns the version that this object defines under `number`.
    pub fn defined_version(&self, number: u16) -> Option<Version> {
        let mut definition = self.version_definitions;
        while definition != 0 && number > 1 {
            // SAFETY: the chain of definitions is the dynamic linker's; an offset of 0 ends it.
            unsafe {
                let index = ptr::read((definition + 4) as *const u16) & 0x7fff;
                let hash = ptr::read((definition + 8) as *const u32);
                let auxiliary = ptr::read((definition + 12) as *const u32);
                let next = ptr::read((definition + 16) as *const u32);
                if index == number {
                    let name = ptr::read((definition + auxiliary as usize) as *const u32);
                    return Some(Version { name: c_bytes(self.strings + name as usize), hash });
                }
                definition = if next == 0 { 0 } else { definition + next as usize };
            }
        }
        None
    }
}
