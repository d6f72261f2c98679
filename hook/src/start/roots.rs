//! What garbage collectors look for pointers in.
//!
//! Conservative ones, like Boehm's, take for roots what the program headers of loaded objects call writable, and read
//! all of it at each collection. Ours is ten megabytes, mostly room for frames, and holds no pointer to a
//! collector's memory. So the headers, once the dynamic linker is done with them, call it read-only.

use core::slice;

use crate::elf::{PF_W, PT_GNU_RELRO, PT_LOAD, ProgramHeader};
use crate::sys;
use chase_format::layout::PAGE;

unsafe extern "C" {
    /// The ELF header, by the linker.
    static __ehdr_start: [u64; 8];
}

/// Has collectors pass by this library's data.
pub(super) fn hide_own() {
    // SAFETY: the linker puts both headers at the start of the first segment.
    let header = unsafe { &__ehdr_start };
    let (table, count) = (header[4] as usize, (header[7] & 0xffff) as usize);
    let start = header.as_ptr() as usize;
    let len = (table + count * size_of::<ProgramHeader>()).next_multiple_of(PAGE);
    if sys::protect(start, len, libc::PROT_READ | libc::PROT_WRITE).is_err() {
        return;
    }
    // SAFETY: the table is there, and writable now; the dynamic linker reads it under a lock that nobody holds
    // before there is a second thread.
    let headers =
        unsafe { slice::from_raw_parts_mut((start + table) as *mut ProgramHeader, count) };
    // What was made read-only after relocation they know of, and complain if no writable segment encloses it.
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
