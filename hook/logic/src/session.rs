//! The lines of `companion.session`, the file that says which companion listens in a directory of recordings.

/// Prefix of the line while a companion is being started; the id of its process follows.
pub const STARTING: &[u8] = b"starting ";

/// Returns the second line of such a file; empty while the line is being written.
#[must_use]
pub fn second_line(text: &[u8]) -> &[u8] {
    let mut lines = text.split(|&byte| byte == b'\n').skip(1);
    // Behind the line feed of the last line there is an empty piece.
    lines.next().filter(|_| lines.next().is_some()).unwrap_or(&[])
}

/// Parses a decimal number.
#[must_use]
pub fn number(digits: &[u8]) -> Option<u64> {
    core::str::from_utf8(digits).ok()?.parse().ok()
}

/// Returns the process that `line` names as being started, if the line has changed from `before`. An unchanged line
/// may be old, and its process id belong to another process by now. Numbers that are not those of single processes
/// are ignored.
#[must_use]
pub fn started_since(before: &[u8], line: &[u8]) -> Option<i32> {
    const INIT: i32 = 1;
    let process = line.strip_prefix(STARTING).and_then(number)?;
    i32::try_from(process).ok().filter(|&process| line != before && process > INIT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_whole_or_nothing() {
        assert_eq!(second_line(b"first\nsecond\n"), b"second");
        assert_eq!(second_line(b"first\nsecond\nthird\n"), b"second");
        assert!(
            [&b""[..], b"first", b"first\n", b"first\nsec"]
                .map(second_line)
                .iter()
                .all(|it| it.is_empty())
        );
    }

    #[test]
    fn only_a_line_of_this_attempt_names_a_process() {
        assert_eq!(started_since(b"", b"starting 123"), Some(123));
        assert_eq!(started_since(b"failed 1 no", b"starting 123"), Some(123));
        assert_eq!(started_since(b"starting 123", b"starting 123"), None);
        assert_eq!(started_since(b"starting 123", b"starting 124"), Some(124));
    }

    #[test]
    fn groups_and_all_processes_are_no_process() {
        for line in [
            "starting 0",
            "starting 1",
            "starting 4294967295",
            "starting -1",
            "starting ",
            "session 5",
        ] {
            assert_eq!(started_since(b"", line.as_bytes()), None, "{line}");
        }
    }
}
