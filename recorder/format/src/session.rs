//! The file by which processes find the companion of their run, and readers find out whether it has caught up.
//!
//! It is in the directory of the recordings, and has three lines:
//!
//! ```text
//! chase companion 1
//! session N              the number that a hello must have
//! idle NNNNNNNNNNNNNNNNNNNN
//! ```
//!
//! If the companion only takes samples, the second line is `samples REASON`: no hello is received, and the reason
//! says why.
//!
//! The file is locked (`flock`) as long as the companion accepts hellos. The third line is rewritten in place, with
//! 20 digits: the time in ns of `CLOCK_MONOTONIC` at which the companion last found that none of the processes that
//! it watches lives, and that everything is written; 0 while some process lives.

/// Name of the file, in the directory of the run's recordings.
pub const FILE_NAME: &str = "companion.session";
/// Its first line.
pub const FIRST_LINE: &str = "chase companion 1";
/// Prefix of the second line while a companion listens.
pub const SESSION: &str = "session ";
/// Prefix of the second line if the companion only takes samples; the reason follows.
pub const SAMPLES: &str = "samples ";
/// Prefix of the second line if no companion could be started; the time in seconds since 1970 and the reason follow.
pub const FAILED: &str = "failed ";
/// Prefix of the third line.
pub const IDLE: &str = "idle ";

/// Returns when the companion last found nothing left to do, in ns of `CLOCK_MONOTONIC`; `None` if it is busy, or has
/// not written it.
#[must_use]
pub fn idle_since(text: &[u8]) -> Option<u64> {
    let mut lines = text.split(|&byte| byte == b'\n');
    let line = lines.nth(2)?;
    // The line is complete if another piece follows.
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
