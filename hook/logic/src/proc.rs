//! What files of `/proc` say.

use crate::session::number;

/// Calls `f` with each complete line until it returns true; returns how many bytes were used, and whether it did.
fn whole_lines(text: &[u8], f: &mut impl FnMut(&[u8]) -> bool) -> (usize, bool) {
    let mut rest = text;
    let mut is_found = false;
    while !is_found && let Some(end) = rest.iter().position(|&byte| byte == b'\n') {
        is_found = rest.get(..end).is_some_and(&mut *f);
        rest = rest.get(end + 1..).unwrap_or(&[]);
    }
    (text.len() - rest.len(), is_found)
}

/// The length of a buffer for lines with a path.
const LONGEST_LINE: usize = 4096 + 128;

/// Whether `f` is true of a line of the file of which `read` stores the next bytes, and returns how many; 0 at the end. Calls `f`
/// with each line until it is. Stops at a line that is longer than a path can be.
pub fn any_line(
    mut read: impl FnMut(&mut [u8]) -> usize,
    mut f: impl FnMut(&[u8]) -> bool,
) -> bool {
    let mut buffer = [0; LONGEST_LINE];
    let mut len = 0;
    while let Some(free) = buffer.get_mut(len..) {
        let read = if free.is_empty() { 0 } else { read(free) };
        len += read;
        let (used, is_found) = whole_lines(buffer.get(..len).unwrap_or(&[]), &mut f);
        // The end of the file, or a line longer than the buffer.
        if is_found || read == 0 && used == 0 {
            return is_found;
        }
        // What follows is the beginning of the next line.
        if used <= len && len <= LONGEST_LINE {
            buffer.copy_within(used..len, 0);
        }
        len -= used;
    }
    false
}

/// Whether an address is in the mapping that a line of `maps` is about.
#[must_use]
pub fn holds(line: &[u8], address: usize) -> bool {
    let mut ends = line.split(|&byte| byte == b'-' || byte == b' ').map(hex);
    ends.next().is_some_and(|start| start <= address)
        && ends.next().is_some_and(|end| address < end)
}

fn hex(digits: &[u8]) -> usize {
    let value = |&byte: &u8| (byte as char).to_digit(16).unwrap_or(0) as usize;
    digits.iter().map(value).fold(0, |number, digit| number << 4 | digit)
}

/// Returns the path of the file that a line of `maps` is about.
#[must_use]
pub fn path_in(line: &[u8]) -> Option<&[u8]> {
    line.get(line.iter().position(|&byte| byte == b'/')?..)
}

/// Returns when the process of this `stat` started, in clock ticks since boot (field 22); 0 if it doesn't say.
#[must_use]
pub fn process_start(stat: &[u8]) -> u64 {
    const FIELDS_AFTER_NAME: usize = 20;
    // The name is in parentheses, and may itself contain parentheses.
    let after_name = stat.iter().rposition(|&byte| byte == b')').unwrap_or(0);
    let fields = stat.get(after_name..).unwrap_or(&[]);
    let field = fields.split(|&byte| byte == b' ').nth(FIELDS_AFTER_NAME);
    field.and_then(number).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &[u8] = b"7f0000001000-7f0000003000 r-xp 00001000 08:01 42   /usr/lib/a b.so";

    #[test]
    fn a_mapping_holds_what_is_between_its_ends() {
        let held = [0x7f00_0000_1000, 0x7f00_0000_2fff].map(|address| holds(LINE, address));
        let others = [0x7f00_0000_0fff, 0x7f00_0000_3000, 0].map(|address| holds(LINE, address));
        assert_eq!((held, others), ([true; 2], [false; 3]));
        assert!(!holds(b"", 0));
    }

    #[test]
    fn a_path_may_contain_blanks() {
        assert_eq!(path_in(LINE), Some(&b"/usr/lib/a b.so"[..]));
        assert_eq!(path_in(b"7f0000001000-7f0000003000 rw-p 00000000 00:00 0 [heap]"), None);
    }

    #[test]
    fn lines_are_whole() {
        let mut seen = std::vec::Vec::new();
        let mut note = |line: &[u8]| {
            seen.push(line.to_vec());
            line == b"two"
        };
        assert_eq!(whole_lines(b"one\ntw", &mut note), (4, false));
        assert_eq!(whole_lines(b"two\nthree\n", &mut note), (4, true));
        assert_eq!(seen, [&b"one"[..], b"two"]);
    }

    /// Returns the lines that are seen up to `last`, and whether it is found, where each read gives at most `most` bytes.
    fn lines_up_to(
        last: &[u8],
        text: &[u8],
        most: usize,
    ) -> (std::vec::Vec<std::vec::Vec<u8>>, bool) {
        let (mut at, mut seen) = (0, std::vec::Vec::new());
        let read = |into: &mut [u8]| {
            let len = most.min(into.len()).min(text.len() - at);
            into[..len].copy_from_slice(&text[at..at + len]);
            at += len;
            len
        };
        let is_found = any_line(read, |line| {
            seen.push(line.to_vec());
            line == last
        });
        (seen, is_found)
    }

    #[test]
    fn lines_are_found_in_whatever_pieces_they_come() {
        let text: std::vec::Vec<u8> =
            (0..2_000).flat_map(|i| std::format!("line {i}\n").into_bytes()).collect();
        for most in [7, 100, LONGEST_LINE, usize::MAX] {
            let (seen, is_found) = lines_up_to(b"line 1500", &text, most);
            assert!(is_found && seen.len() == 1_501 && seen[777] == b"line 777");
            let (seen, is_found) = lines_up_to(b"line", &text, most);
            assert!(!is_found && seen.len() == 2_000);
        }
        // A last line without an end is none.
        assert_eq!(lines_up_to(b"b", b"a\nb", 9), (std::vec![b"a".to_vec()], false));
        assert_eq!(lines_up_to(b"", b"", 9), (std::vec![], false));
    }

    #[test]
    fn a_line_that_does_not_fit_ends_the_search() {
        let mut text = b"one\n".to_vec();
        text.extend(std::iter::repeat_n(b'x', LONGEST_LINE));
        text.extend(b"\ntwo\n");
        assert_eq!(lines_up_to(b"two", &text, 1_000), (std::vec![b"one".to_vec()], false));
    }

    #[test]
    fn a_name_may_look_like_fields() {
        let stat = |name: &str| {
            std::format!("12 ({name}) S 1 12 12 0 -1 4194304 1 0 0 0 0 0 0 0 20 0 1 0 98765 1 2")
        };
        for name in ["cat", "a) S 1 (b", ")))"] {
            assert_eq!(process_start(stat(name).as_bytes()), 98_765, "{name}");
        }
        assert_eq!([&b""[..], b"12 (cat) S 1", b")"].map(process_start), [0; 3]);
    }
}
