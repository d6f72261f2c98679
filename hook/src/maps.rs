//! Reads `/proc/<pid>/maps` and similar files in pieces, without allocating memory.

use core::ffi::CStr;

use crate::sys;
use chase_logic::proc;

/// Whether `f` is true of a line of the file, up to which it is called with each. False if the file can't be read.
pub(crate) fn any_line(path: &CStr, f: impl FnMut(&[u8]) -> bool) -> bool {
    let Ok(fd) = sys::open(path, libc::O_RDONLY, 0) else { return false };
    let is_found = proc::any_line(|free| sys::read_some(fd, free), f);
    sys::close(fd);
    is_found
}
