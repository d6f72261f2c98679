//! Hides the library's data from garbage collectors.
//!
//! Conservative collectors, like Boehm's, use the writable segments in the program headers of loaded objects as
//! roots, and read all of them at each collection. Ours has ten megabytes, mostly frames, without any pointer to a
//! collector's memory. So once the dynamic linker has finished with the headers, they are changed to say read-only.

use core::slice;

use crate::sys;
use chase_format::layout::PAGE;
use chase_logic::elf::{PF_W, PT_GNU_RELRO, PT_LOAD, ProgramHeader};

unsafe extern "C" {
    /// The ELF header, as defined by the linker.
    static __ehdr_start: [u64; 8];
}

/// Makes collectors ignore this library's data.
pub(super) fn hide_own() {
    // SAFETY: the linker puts the ELF header and the program headers at the start of the first segment.
    let header = unsafe { &__ehdr_start };
    let (table, count) = (header[4] as usize, (header[7] & 0xffff) as usize);
    let start = header.as_ptr() as usize;
    let len = (table + count * size_of::<ProgramHeader>()).next_multiple_of(PAGE);
    if sys::protect(start, len, libc::PROT_READ | libc::PROT_WRITE).is_err() {
        return;
    }
    // SAFETY: the table is mapped, and writable now; the dynamic linker reads it under a lock that nobody holds
    // before there is a second thread.
    let headers =
        unsafe { slice::from_raw_parts_mut((start + table) as *mut ProgramHeader, count) };
    // Collectors know of the RELRO range, and complain if no writable segment contains it.
    let relocated = headers.iter().find(|header| header.kind == PT_GNU_RELRO).map(|it| it.vaddr);
    let is_data = |header: &&mut ProgramHeader| {
        let holds = |address: u64| address.wrapping_sub(header.vaddr) < header.memsz;
        header.kind == PT_LOAD && !relocated.is_some_and(holds)
    };
    for header in headers.iter_mut().filter(is_data) {
        header.flags &= !PF_W;
    }
    let _ = sys::protect(start, len, libc::PROT_READ);
}
