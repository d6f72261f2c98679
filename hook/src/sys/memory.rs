//! System calls for memory.

use core::ptr;

use chase_format::layout::READABLE_HOW;

use super::{Errno, call3, check, system_call};

/// Advice that makes the kernel provide pages at once, from Linux 5.14 on.
pub(crate) const MADV_POPULATE_WRITE: i32 = 23;

/// Maps private anonymous memory, zeroed; returns null if there is none.
pub(crate) fn map_anonymous(len: usize) -> *mut u8 {
    map_private(len, 0)
}

/// Maps private anonymous memory of which most will be used, zeroed; returns null if there is none. Populating it at
/// once is faster than one fault per page.
pub(crate) fn map_populated(len: usize) -> *mut u8 {
    map_private(len, libc::MAP_POPULATE)
}

fn map_private(len: usize, more: i32) -> *mut u8 {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | more;
    map(ptr::null_mut(), len, WRITABLE, flags, NO_FILE).unwrap_or(ptr::null_mut())
}

/// Maps shared memory, zeroed and populated; returns null if there is none. Unlike private memory, it is accounted
/// for where it is created, not with the mapping. So moving the mapping needs no more memory, and can't fail for lack
/// of it after the mapping in the other place was removed.
pub(crate) fn map_movable(len: usize) -> *mut u8 {
    let flags = libc::MAP_SHARED | libc::MAP_ANONYMOUS | libc::MAP_POPULATE;
    map(ptr::null_mut(), len, WRITABLE, flags, NO_FILE).unwrap_or(ptr::null_mut())
}

/// Maps inaccessible memory.
pub(crate) fn map_nothing(len: usize) -> Result<*mut u8, Errno> {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    map(ptr::null_mut(), len, libc::PROT_NONE, flags, NO_FILE)
}

/// Replaces the mapping at `address` by private anonymous memory, zeroed.
pub(crate) fn map_anonymous_at(address: *mut u8, len: usize) {
    let kind = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_FIXED;
    let _ = map(address, len, WRITABLE, kind, NO_FILE);
}

/// Maps a file, shared and writable: at `place` if that is free, otherwise elsewhere.
pub(crate) fn map_file(place: *mut u8, fd: i32, len: usize) -> Result<*mut u8, Errno> {
    map(place, len, WRITABLE, libc::MAP_SHARED | libc::MAP_NORESERVE, fd)
}

const WRITABLE: i32 = libc::PROT_READ | libc::PROT_WRITE;
const NO_FILE: i32 = -1;

fn map(place: *mut u8, len: usize, protection: i32, flags: i32, fd: i32) -> Result<*mut u8, Errno> {
    let (protection, flags) = (protection as usize, flags as usize);
    let arguments = [place as usize, len, protection, flags, fd as usize, 0];
    check(system_call(libc::SYS_mmap as usize, arguments)).map(|address| address as *mut u8)
}

/// Extends a mapping in place.
pub(crate) fn extend_mapping(address: *mut u8, len: usize, new_len: usize) -> Result<(), Errno> {
    check(call3(libc::SYS_mremap, address as usize, len, new_len)).map(drop)
}

/// Moves a mapping of [`map_movable`] to `to`, replacing what is mapped there.
pub(crate) fn move_mapping(address: *mut u8, len: usize, to: usize) -> Result<(), Errno> {
    let flags = (libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED) as usize;
    let arguments = [address as usize, len, len, flags, to, 0];
    check(system_call(libc::SYS_mremap as usize, arguments)).map(drop)
}

/// Unmaps memory.
pub(crate) fn unmap(address: *mut u8, len: usize) {
    call3(libc::SYS_munmap, address as usize, len, 0);
}

/// Changes the protection of whole pages.
pub(crate) fn protect(address: usize, len: usize, protection: i32) -> Result<(), Errno> {
    check(call3(libc::SYS_mprotect, address, len, protection as usize)).map(drop)
}

/// Calls `madvise`.
pub(crate) fn advise(address: *mut u8, len: usize, advice: i32) -> Result<(), Errno> {
    check(call3(libc::SYS_madvise, address as usize, len, advice as usize)).map(drop)
}

/// Whether the eight bytes at `address` can be read. The kernel copies a signal mask from there before it rejects the
/// request.
pub(crate) fn can_read(address: usize) -> bool {
    let arguments = [READABLE_HOW as usize, address, 0, size_of::<u64>(), 0, 0];
    check(system_call(libc::SYS_rt_sigprocmask as usize, arguments)) == Err(libc::EINVAL)
}

/// Returns the word at `address`, copied by the kernel; `None` if it can't be read.
pub(crate) fn copy_word(address: usize) -> Option<usize> {
    let mut word = [0; size_of::<usize>()];
    copy(address, &mut word).then_some(usize::from_ne_bytes(word))
}

/// Lets the kernel copy what is at `address`. Returns false if not all of it can be read.
pub(crate) fn copy(address: usize, out: &mut [u8]) -> bool {
    let to = [out.as_mut_ptr() as usize, out.len()];
    let from = [address, out.len()];
    let (to, from) = (to.as_ptr() as usize, from.as_ptr() as usize);
    let arguments = [super::getpid() as usize, to, 1, from, 1, 0];
    check(system_call(libc::SYS_process_vm_readv as usize, arguments)) == Ok(out.len())
}

/// Whether the eight bytes at `address` can be written. Overwrites them: the kernel copies this thread's signal mask
/// there.
pub(crate) fn can_overwrite(address: usize) -> bool {
    let arguments = [0, 0, address, size_of::<u64>(), 0, 0];
    check(system_call(libc::SYS_rt_sigprocmask as usize, arguments)).is_ok()
}
