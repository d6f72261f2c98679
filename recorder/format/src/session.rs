//! The file by which processes find the companion of their run, and readers when it has caught up.
//!
//! It lies in the directory of the recordings and has three lines:
//!
//! ```text
//! chase companion 1
//! session N              the number that a hello must have
//! idle NNNNNNNNNNNNNNNNNNNN
//! ```
//!
//! Where the companion takes samples alone, the second line is `samples REASON`: no hello is heard, and the reason says why.
//!
//! It is locked (`flock`) as long as the companion takes hellos. The third line is written in place, with 20 digits. It
//! says when the companion last found that no process it watches lives, and that all is written: ns of
//! `CLOCK_MONOTONIC`, 0 while some process lives.

/// Name of the file, in the directory of the run's recordings.
pub const FILE_NAME: &str = "companion.session";
/// Its first line.
pub const FIRST_LINE: &str = "chase companion 1";
/// What the second one begins with, while a companion listens.
pub const SESSION: &str = "session ";
/// What it begins with where one takes samples alone; then comes why.
pub const SAMPLES: &str = "samples ";
/// What it begins with where none could be started; then come seconds since 1970, and why.
pub const FAILED: &str = "failed ";
/// What the third one begins with.
pub const IDLE: &str = "idle ";

/// When the companion last found nothing left to do, ns of `CLOCK_MONOTONIC`; `None` if it is busy, or has not said.
#[must_use]
pub fn idle_since(text: &[u8]) -> Option<u64> {
    let mut lines = text.split(|&byte| byte == b'\n');
    let line = lines.nth(2)?;
    // The line is whole if something is behind it.
    lines.next()?;
    let digits = core::str::from_utf8(line.strip_prefix(IDLE.as_bytes())?).ok()?;
    digits.parse().ok().filter(|&since| since > 0)
}

#[cfg(test)]
mod tests {
    use super::idle_since;

    #[test]
    fn only_whole_lines_count() {
        let text = b"chase companion 1\nsession 7\nidle 00000000000000000042\n";
        assert_eq!(idle_since(text), Some(42));
        assert_eq!(idle_since(&text[..text.len() - 1]), None);
        assert_eq!(idle_since(b"chase companion 1\nsession 7\nidle 00000000000000000000\n"), None);
        assert_eq!(idle_since(b"chase companion 1\nsession 7\n"), None);
    }
}
