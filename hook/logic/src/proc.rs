//! What files of `/proc` say.

use crate::session::number;

/// Calls `f` with each complete line until it returns true; returns how many bytes were used, and whether it did.
pub fn whole_lines(text: &[u8], f: &mut impl FnMut(&[u8]) -> bool) -> (usize, bool) {
    let mut used = 0;
    for line in text.split_inclusive(|&byte| byte == b'\n') {
        let Some(line) = line.strip_suffix(b"\n") else { break };
        used += line.len() + 1;
        if f(line) {
            return (used, true);
        }
    }
    (used, false)
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
