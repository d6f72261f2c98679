//! Reads `/proc/<pid>/maps` and similar files in pieces, without allocating memory.

use core::ffi::CStr;

use crate::sys;
use chase_logic::proc::whole_lines;

const LINE: usize = 4096 + 128;

/// Calls `f` with each line of the file until it returns true. Stops at a line that is longer than a path can be.
pub(crate) fn for_each_line(path: &CStr, mut f: impl FnMut(&[u8]) -> bool) {
    let Ok(fd) = sys::open(path, libc::O_RDONLY, 0) else { return };
    let mut buffer = [0u8; LINE];
    let mut len = 0;
    while let Some(free) = buffer.get_mut(len..) {
        let read = if free.is_empty() { 0 } else { sys::read_some(fd, free) };
        len += read;
        let (used, done) = whole_lines(buffer.get(..len).unwrap_or(&[]), &mut f);
        // The end of the file, or a line longer than the buffer.
        if done || read == 0 && used == 0 {
            break;
        }
        len = keep_rest(&mut buffer, used, len);
    }
    sys::close(fd);
}

/// Moves the bytes from `used` up to `len` to the start of the buffer; returns their number.
fn keep_rest(buffer: &mut [u8], used: usize, len: usize) -> usize {
    if used > len || len > buffer.len() {
        return 0;
    }
    buffer.copy_within(used..len, 0);
    len - used
}
