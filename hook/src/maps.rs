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

/// Start of the mapping that holds `address`.
pub(crate) fn start_of_mapping(address: usize) -> Option<usize> {
    let mut found = None;
    for_each_line(c"/proc/self/maps", |line| {
        let (start, rest) = hexadecimal(line);
        let (end, _) = hexadecimal(rest.get(1..).unwrap_or(&[]));
        if (start..end).contains(&address) {
            found = Some(start);
        }
        end > address
    });
    found
}

/// The number that `text` begins with, and what follows it.
fn hexadecimal(text: &[u8]) -> (usize, &[u8]) {
    let digits = text.iter().take_while(|b| b.is_ascii_hexdigit()).count();
    let mut value = 0usize;
    for &b in text.iter().take(digits) {
        value = value << 4 | (b as char).to_digit(16).unwrap_or(0) as usize;
    }
    (value, text.get(digits..).unwrap_or(&[]))
}
