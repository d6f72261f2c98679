//! The file by which processes find the companion of their run, and readers find out whether it has caught up.
//!
//! It is in the directory of the recordings, and has four lines:
//!
//! ```text
//! chase companion 1
//! session N              the number that a hello must have
//! idle NNNNNNNNNNNNNNNNNNNN
//! process PID sampling WISH
//! ```
//!
//! If the companion only takes samples, the second line is `samples REASON`: no hello is received, and the reason
//! says why.
//!
//! The file is locked (`flock`) as long as the companion accepts hellos. The third line is rewritten in place, with
//! 20 digits: the time in ns of `CLOCK_MONOTONIC` at which the companion last found that none of the processes that
//! it watches lives, and that everything is written; 0 while some process lives. The fourth has the companion's process and how
//! often it was asked to take samples: what `CHASE_SAMPLE` says, or `auto`.

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
/// Prefix of the fourth line: the companion's process.
pub const PROCESS: &str = "process ";
/// What is between that and how often samples are taken.
pub const SAMPLING: &str = " sampling ";
/// How the fourth line says that nobody asked for a rate of samples.
pub const AUTO: &str = "auto";
/// More samples per second than this are not taken: the most that `CHASE_SAMPLE` may ask for.
pub const MOST_SAMPLES: u32 = 10_000;

/// The signal that asks a companion to end as soon as it has nothing to watch: `SIGUSR1`.
pub const DISMISS: i32 = 10;

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

/// Returns the companion's process, and how often it was asked to take samples: [`AUTO`], `off` or samples per second. `None` if the
/// line is missing, as companions of before did not write it.
#[must_use]
pub fn sampling(text: &[u8]) -> Option<(i32, &str)> {
    let mut lines = text.split(|&byte| byte == b'\n');
    let line = lines.nth(3)?;
    lines.next()?;
    let line = core::str::from_utf8(line).ok()?.strip_prefix(PROCESS)?;
    let (process, wish) = line.split_once(SAMPLING)?;
    Some((process.parse().ok().filter(|&process| process > 0)?, wish))
}

#[cfg(test)]
mod tests {
    use super::{idle_since, sampling};

    #[test]
    fn only_whole_lines_count() {
        let text = b"chase companion 1\nsession 7\nidle 00000000000000000042\n";
        assert_eq!(idle_since(text), Some(42));
        assert_eq!(idle_since(&text[..text.len() - 1]), None);
        assert_eq!(idle_since(b"chase companion 1\nsession 7\nidle 00000000000000000000\n"), None);
        assert_eq!(idle_since(b"chase companion 1\nsession 7\n"), None);
    }

    #[test]
    fn who_takes_samples_and_how_often() {
        let text =
            b"chase companion 1\nsession 7\nidle 00000000000000000042\nprocess 12 sampling off\n";
        assert_eq!(sampling(text), Some((12, "off")));
        assert_eq!(idle_since(text), Some(42));
        assert_eq!(sampling(&text[..text.len() - 1]), None);
        assert_eq!(
            sampling(b"chase companion 1\nsession 7\nidle 0\nprocess -1 sampling off\n"),
            None
        );
        assert_eq!(sampling(b"chase companion 1\nsession 7\nidle 0\n"), None);
    }
}
