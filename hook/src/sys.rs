//! The one seam to the kernel. Nothing here goes through the C library, so nothing changes `errno`
//! or can be intercepted by the application.

use core::ffi::CStr;

use crate::arch::system_call;

/// An error number of the kernel, positive.
pub(crate) type Errno = i32;

fn check(result: isize) -> Result<usize, Errno> {
    if (-4095..0).contains(&result) { Err(-result as Errno) } else { Ok(result as usize) }
}

fn call0(number: i64) -> isize {
    system_call(number as usize, [0; 6])
}

fn call3(number: i64, a: usize, b: usize, c: usize) -> isize {
    system_call(number as usize, [a, b, c, 0, 0, 0])
}

/// Process id, from the kernel and not from memory.
pub(crate) fn getpid() -> u32 {
    call0(libc::SYS_getpid) as u32
}

/// Thread id.
pub(crate) fn gettid() -> u32 {
    call0(libc::SYS_gettid) as u32
}

/// Parent, process group and session.
pub(crate) fn family() -> (u32, u32, u32) {
    (
        call0(libc::SYS_getppid) as u32,
        call3(libc::SYS_getpgid, 0, 0, 0) as u32,
        call3(libc::SYS_getsid, 0, 0, 0) as u32,
    )
}

/// Opens a file, close-on-exec.
pub(crate) fn open(path: &CStr, flags: i32, mode: u32) -> Result<i32, Errno> {
    let at = libc::AT_FDCWD as isize as usize;
    let flags = (flags | libc::O_CLOEXEC | libc::O_NOCTTY) as usize;
    let path = path.as_ptr() as usize;
    check(system_call(libc::SYS_openat as usize, [at, path, flags, mode as usize, 0, 0]))
        .map(|fd| fd as i32)
}

/// Closes a descriptor of ours.
pub(crate) fn close(fd: i32) {
    call3(libc::SYS_close, fd as usize, 0, 0);
}

/// Reads what there is, up to the length of `buffer`; 0 at the end and on errors.
pub(crate) fn read_some(fd: i32, buffer: &mut [u8]) -> usize {
    loop {
        let (at, len) = (buffer.as_mut_ptr() as usize, buffer.len());
        match check(call3(libc::SYS_read, fd as usize, at, len)) {
            Err(libc::EINTR) => {}
            result => return result.unwrap_or(0),
        }
    }
}

/// Reads until `buffer` is full or the file ends.
pub(crate) fn read_all(fd: i32, buffer: &mut [u8]) -> usize {
    let mut len = 0;
    while let Some(free) = buffer.get_mut(len..).filter(|free| !free.is_empty()) {
        match read_some(fd, free) {
            0 => break,
            n => len += n,
        }
    }
    len
}

/// The contents of a small file, as much as fits; empty if it can't be read.
pub(crate) fn read_file<'a>(path: &CStr, buffer: &'a mut [u8]) -> &'a [u8] {
    let Ok(fd) = open(path, libc::O_RDONLY, 0) else { return &[] };
    let len = read_all(fd, buffer);
    close(fd);
    buffer.get(..len).unwrap_or(&[])
}

/// Target of a symbolic link, empty if it can't be read.
pub(crate) fn read_link<'a>(path: &CStr, buffer: &'a mut [u8]) -> &'a [u8] {
    let (at, len) = (buffer.as_mut_ptr() as usize, buffer.len());
    let result = call3(libc::SYS_readlink, path.as_ptr() as usize, at, len);
    buffer.get(..result.max(0) as usize).unwrap_or(&[])
}

/// Working directory without its NUL, empty if it has no path.
pub(crate) fn working_directory(buffer: &mut [u8]) -> &[u8] {
    let result = call3(libc::SYS_getcwd, buffer.as_mut_ptr() as usize, buffer.len(), 0);
    buffer.get(..(result - 1).max(0) as usize).unwrap_or(&[])
}

/// Makes a directory.
pub(crate) fn mkdir(path: &CStr) -> Result<(), Errno> {
    check(call3(libc::SYS_mkdir, path.as_ptr() as usize, 0o777, 0)).map(drop)
}

/// Removes a file.
pub(crate) fn unlink(path: &CStr) {
    call3(libc::SYS_unlink, path.as_ptr() as usize, 0, 0);
}

/// Sets the length of an open file.
pub(crate) fn ftruncate(fd: i32, len: usize) -> Result<(), Errno> {
    check(call3(libc::SYS_ftruncate, fd as usize, len, 0)).map(drop)
}

/// Allocates the first `len` bytes of an open file.
pub(crate) fn fallocate(fd: i32, len: usize) -> Result<(), Errno> {
    check(system_call(libc::SYS_fallocate as usize, [fd as usize, 0, 0, len, 0, 0])).map(drop)
}

/// Writes `len` zero bytes, a multiple of 4096, to the start of an open file.
pub(crate) fn write_zeros(fd: i32, len: usize) -> Result<(), Errno> {
    const PAGE: usize = 4096;
    const PIECES: usize = 32;
    static ZEROS: [u8; PAGE] = [0; PAGE];
    let pieces = [(ZEROS.as_ptr() as usize, PAGE); PIECES];
    let mut at = 0;
    while at < len {
        let count = ((len - at) / PAGE).min(PIECES);
        let arguments = [fd as usize, pieces.as_ptr() as usize, count, at, 0, 0];
        match check(system_call(libc::SYS_pwritev as usize, arguments))? {
            written if written == count * PAGE => at += written,
            _ => return Err(libc::ENOSPC),
        }
    }
    Ok(())
}

/// Device and inode of an open file.
pub(crate) fn file_identity(fd: i32) -> Option<(u64, u64)> {
    // SAFETY: all-zero is a valid `stat`.
    let mut stat: libc::stat = unsafe { core::mem::zeroed() };
    check(call3(libc::SYS_fstat, fd as usize, &raw mut stat as usize, 0)).ok()?;
    Some((stat.st_dev, stat.st_ino))
}

/// Private anonymous memory, zeroed; null if there is none.
pub(crate) fn map_anonymous(len: usize) -> *mut u8 {
    let protection = (libc::PROT_READ | libc::PROT_WRITE) as usize;
    let flags = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE) as usize;
    let result = system_call(libc::SYS_mmap as usize, [0, len, protection, flags, usize::MAX, 0]);
    check(result).map_or(core::ptr::null_mut(), |address| address as *mut u8)
}

/// Replaces what is mapped at `address` by private anonymous memory, zeroed.
pub(crate) fn map_anonymous_at(address: *mut u8, len: usize) {
    let protection = (libc::PROT_READ | libc::PROT_WRITE) as usize;
    let kind = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_FIXED;
    let arguments = [address as usize, len, protection, kind as usize, usize::MAX, 0];
    system_call(libc::SYS_mmap as usize, arguments);
}

/// Maps a file, shared and writable: at `place` if that is free, or elsewhere.
pub(crate) fn map_file(place: *mut u8, fd: i32, len: usize) -> Result<*mut u8, Errno> {
    let protection = (libc::PROT_READ | libc::PROT_WRITE) as usize;
    let flags = (libc::MAP_SHARED | libc::MAP_NORESERVE) as usize;
    let arguments = [place as usize, len, protection, flags, fd as usize, 0];
    check(system_call(libc::SYS_mmap as usize, arguments)).map(|address| address as *mut u8)
}

/// Makes a mapping longer where it is.
pub(crate) fn extend_mapping(address: *mut u8, len: usize, new_len: usize) -> Result<(), Errno> {
    check(call3(libc::SYS_mremap, address as usize, len, new_len)).map(drop)
}

/// Takes a mapping away.
pub(crate) fn unmap(address: *mut u8, len: usize) {
    call3(libc::SYS_munmap, address as usize, len, 0);
}

/// Changes the protection of whole pages.
pub(crate) fn protect(address: usize, len: usize, protection: i32) -> Result<(), Errno> {
    check(call3(libc::SYS_mprotect, address, len, protection as usize)).map(drop)
}

/// `madvise`.
pub(crate) fn advise(address: *mut u8, len: usize, advice: i32) -> Result<(), Errno> {
    check(call3(libc::SYS_madvise, address as usize, len, advice as usize)).map(drop)
}

/// Whether the page at `address` is mapped.
pub(crate) fn is_mapped(address: usize) -> bool {
    let mut resident = 0u8;
    let page = address & !4095;
    check(call3(libc::SYS_mincore, page, 1, &raw mut resident as usize)).is_ok()
}

/// A time of the kernel's clocks, ns.
pub(crate) fn clock_ns(clock: i32) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    call3(libc::SYS_clock_gettime, clock as usize, &raw mut time as usize, 0);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Whether the process may read the time stamp counter.
pub(crate) fn may_read_time_stamp() -> bool {
    const PR_GET_TSC: usize = 25;
    const PR_TSC_ENABLE: u32 = 1;
    let mut mode = PR_TSC_ENABLE;
    call3(libc::SYS_prctl, PR_GET_TSC, &raw mut mode as usize, 0);
    mode == PR_TSC_ENABLE
}

/// Name of the calling thread, NUL-padded.
pub(crate) fn thread_name() -> [u8; 16] {
    let mut name = [0u8; 16];
    call3(libc::SYS_prctl, libc::PR_GET_NAME as usize, name.as_mut_ptr() as usize, 0);
    name
}

/// Soft limit of a resource, `u64::MAX` for none.
pub(crate) fn limit(resource: u32) -> u64 {
    let mut limit = libc::rlimit { rlim_cur: libc::RLIM_INFINITY, rlim_max: 0 };
    let arguments = [0, resource as usize, 0, &raw mut limit as usize, 0, 0];
    system_call(libc::SYS_prlimit64 as usize, arguments);
    limit.rlim_cur
}

/// Host name and kernel release.
pub(crate) fn system_names() -> libc::utsname {
    // SAFETY: all-zero is a valid `utsname`.
    let mut names: libc::utsname = unsafe { core::mem::zeroed() };
    call3(libc::SYS_uname, &raw mut names as usize, 0, 0);
    names
}

/// Writes a line for people, where they asked for it.
pub(crate) fn write_stderr(bytes: &[u8]) {
    call3(libc::SYS_write, 2, bytes.as_ptr() as usize, bytes.len());
}

/// Waits until `word` is no longer `value`, or a moment longer.
pub(crate) fn futex_wait(word: &core::sync::atomic::AtomicU32, value: u32) {
    let wait = (libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG) as usize;
    call3(libc::SYS_futex, word.as_ptr() as usize, wait, value as usize);
}

/// Wakes one waiter of `word`.
pub(crate) fn futex_wake(word: &core::sync::atomic::AtomicU32) {
    let wake = (libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG) as usize;
    call3(libc::SYS_futex, word.as_ptr() as usize, wake, 1);
}

/// Sets the signals that are blocked in this thread, and gives those that were.
pub(crate) fn set_signal_mask(mask: u64) -> u64 {
    let mut before = 0u64;
    let (new, old) = (&raw const mask as usize, &raw mut before as usize);
    let arguments = [libc::SIG_SETMASK as usize, new, old, size_of::<u64>(), 0, 0];
    system_call(libc::SYS_rt_sigprocmask as usize, arguments);
    before
}
