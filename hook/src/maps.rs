//! `/proc/<pid>/maps`, read in pieces, without memory of its own.

use core::ffi::CStr;

use crate::sys;

const LINE: usize = 4096 + 128;

/// Calls `f` with each line of the file, until it returns true. Lines too long to matter are cut.
pub(crate) fn for_each_line(path: &CStr, mut f: impl FnMut(&[u8]) -> bool) {
    let Ok(fd) = sys::open(path, libc::O_RDONLY, 0) else { return };
    let mut buffer = [0u8; LINE];
    let mut len = 0;
    loop {
        let Some(free) = buffer.get_mut(len..) else { break };
        let read = if free.is_empty() { 0 } else { sys::read_some(fd, free) };
        len += read;
        let Some(filled) = buffer.get(..len) else { break };
        let mut start = 0;
        let mut done = false;
        while let Some(at) =
            filled.get(start..).and_then(|rest| rest.iter().position(|&b| b == b'\n'))
        {
            done = filled.get(start..start + at).is_some_and(&mut f);
            start += at + 1;
            if done {
                break;
            }
        }
        if done || read == 0 && start == 0 {
            break;
        }
        buffer.copy_within(start..len, 0);
        len -= start;
    }
    sys::close(fd);
}
