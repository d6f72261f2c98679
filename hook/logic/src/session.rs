//! The lines of `companion.session`, which says who listens in a directory of recordings.

/// Begins the line while one is being started; the process that becomes the companion follows.
pub const STARTING: &[u8] = b"starting ";

/// The line behind the first one of such a file; empty while somebody writes it.
#[must_use]
pub fn second_line(text: &[u8]) -> &[u8] {
    let mut lines = text.split(|&byte| byte == b'\n').skip(1);
    // Behind the end of the last line, there is an empty piece.
    lines.next().filter(|_| lines.next().is_some()).unwrap_or(&[])
}

/// A number in decimal.
#[must_use]
pub fn number(digits: &[u8]) -> Option<u64> {
    core::str::from_utf8(digits).ok()?.parse().ok()
}

/// The process that the line names as being started, if the line was written since it was `before`. A line that was
/// there already may be of any age, and its process another one by now; nor are all numbers those of processes.
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
