//! What is done with the image of a loaded object, beside reading it.

use chase_logic::elf::{Image, STT_GNU_IFUNC, Symbol};

use crate::sys;

/// Returns the address of a definition in the process. For an IFUNC this calls its resolver, which is code of the
/// object: the caller has saved the vector state.
pub(crate) fn address_of(image: &Image, symbol: &Symbol) -> usize {
    let value = image.bias().wrapping_add(symbol.value as usize);
    if symbol.kind() != STT_GNU_IFUNC {
        return value;
    }
    // SAFETY: an IFUNC's value is its resolver, which takes no arguments on this CPU. The object is relocated, since
    // it was loaded before.
    let resolver: unsafe extern "C" fn() -> usize = unsafe { core::mem::transmute(value) };
    // SAFETY: as above.
    unsafe { resolver() }
}

/// Whether the dynamic linker has finished relocating the object. Its last step is to make the pages read-only
/// that only relocations write. Objects without such pages count as relocated; the caller has to look at their
/// entries.
pub(crate) fn is_relocated(image: &Image) -> bool {
    let (start, end) = image.relro();
    let writes = || sys::advise(start as *mut u8, end - start, sys::MADV_POPULATE_WRITE);
    start == end || writes().is_err()
}

/// Sets the protection of the pages that are read-only after relocation.
pub(crate) fn protect_relro(image: &Image, protection: i32) -> bool {
    let (start, end) = image.relro();
    sys::protect(start, end - start, protection).is_ok()
}
