//! Parses `CHASE_EVENTS`: which single calls are recorded with their times, and how many.

use crate::text::{Text, matches_item};

/// The minimum duration of calls that are recorded by default.
const SLOW_NS: u64 = 100_000;
/// The default size of all events of a process.
const BYTES: u64 = 8 << 20;

/// Which calls are recorded as events.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kept {
    /// None.
    Off,
    /// Those that took long.
    Slow,
    /// All.
    All,
}

/// What `CHASE_EVENTS` asks for.
#[derive(Clone, Copy)]
pub struct Events {
    /// Which calls.
    pub kept: Kept,
    /// The minimum duration of calls that are recorded, in ns; 0 where all are.
    pub limit_ns: u64,
    /// The size of the events of all threads together.
    pub bytes: u64,
    /// Which events are kept when there is no more room: the first ones, or the last.
    pub keeps_first: bool,
    /// Whether an item is unknown, and was ignored.
    pub is_unknown: bool,
    /// Whether functions were chosen of which every call is recorded.
    pub has_chosen: bool,
    text: &'static [u8],
}

impl Events {
    /// The values for an empty variable.
    pub const DEFAULT: Self = Self {
        kept: Kept::Slow,
        limit_ns: SLOW_NS,
        bytes: BYTES,
        keeps_first: false,
        is_unknown: false,
        has_chosen: false,
        text: b"",
    };

    /// Returns what a recording says of them, where they have so many bytes.
    #[must_use]
    pub fn described(&self, bytes: u64) -> Text<96> {
        let mut text = Text::new();
        if self.kept == Kept::Off {
            text.push(b"off");
            return text;
        }
        text.push_number(self.limit_ns).push(b" ns, ");
        text.push(if self.keeps_first { b"first " } else { b"last " });
        text.push_number(bytes).push(b" bytes");
        text.push(if self.has_chosen { b", some functions wholly" } else { b"" });
        text
    }

    /// Reads a list such as `slow:1ms,all=libz.so*:deflate,64MB,first`.
    #[must_use]
    pub fn read(text: &'static [u8]) -> Self {
        let mut events = Self { text, ..Self::DEFAULT };
        for item in items(text) {
            match item {
                b"off" | b"0" => events.kept = Kept::Off,
                b"slow" => events.kept = Kept::Slow,
                b"all" => (events.kept, events.limit_ns) = (Kept::All, 0),
                b"first" => events.keeps_first = true,
                b"last" => events.keeps_first = false,
                _ if item.starts_with(CHOSEN) => events.has_chosen = true,
                _ => match (item.strip_prefix(b"slow:").and_then(duration_ns), size(item)) {
                    (Some(limit_ns), _) => {
                        (events.kept, events.limit_ns) = (Kept::Slow, limit_ns);
                    }
                    (None, Some(bytes)) => events.bytes = bytes,
                    (None, None) => events.is_unknown = true,
                },
            }
        }
        events.has_chosen &= events.kept == Kept::Slow;
        events
    }

    /// Whether every call of a function is recorded, however short.
    #[must_use]
    pub fn choose(&self, provider: &[u8], api: &[u8]) -> bool {
        let chosen = |item: &[u8]| {
            item.strip_prefix(CHOSEN).is_some_and(|pattern| matches_item(pattern, provider, api))
        };
        self.has_chosen && items(self.text).any(chosen)
    }
}

const CHOSEN: &[u8] = b"all=";

fn items(text: &'static [u8]) -> impl Iterator<Item = &'static [u8]> {
    text.split(|&byte| byte == b',').filter(|item| !item.is_empty())
}

/// Parses the number at the beginning of a text; returns it and the rest.
fn number(text: &[u8]) -> Option<(u64, &[u8])> {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (digits, unit) = text.split_at_checked(digits)?;
    let mut number = 0_u64;
    for digit in digits {
        number = number.checked_mul(10)?.checked_add(u64::from(digit.wrapping_sub(b'0')))?;
    }
    (!digits.is_empty()).then_some((number, unit))
}

fn duration_ns(text: &[u8]) -> Option<u64> {
    let (number, unit) = number(text)?;
    let unit_ns = match unit {
        b"ns" => 1,
        b"us" => 1_000,
        b"ms" => 1_000_000,
        b"s" => 1_000_000_000,
        _ => return None,
    };
    number.checked_mul(unit_ns)
}

/// Parses a size such as `64MB` into bytes.
#[must_use]
pub fn size(text: &[u8]) -> Option<u64> {
    let (number, unit) = number(text)?;
    let shift = match unit {
        b"KB" | b"kB" | b"K" | b"k" => 10,
        b"MB" | b"M" => 20,
        b"GB" | b"G" => 30,
        _ => return None,
    };
    number.checked_mul(1 << shift)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slow_calls_are_kept_by_default() {
        let events = Events::read(b"");
        assert_eq!((events.kept, events.limit_ns), (Kept::Slow, SLOW_NS));
        assert!(!events.keeps_first && !events.is_unknown && !events.has_chosen);
        assert!(!events.choose(b"libz.so.1", b"deflate"));
    }

    #[test]
    fn a_list_says_which_how_many_and_which_end() {
        let events = Events::read(b"slow:2ms,all=libz.so*:deflate,all=:read,64MB,first");
        assert_eq!((events.kept, events.limit_ns), (Kept::Slow, 2_000_000));
        assert_eq!(events.bytes, 64 << 20);
        assert!(events.keeps_first && !events.is_unknown);
        assert!(events.choose(b"libz.so.1", b"deflate") && events.choose(b"libc.so.6", b"read"));
        assert!(!events.choose(b"libz.so.1", b"inflate"));
        let all = Events::read(b"all,16K");
        assert_eq!((all.kept, all.limit_ns, all.bytes), (Kept::All, 0, 16 << 10));
        assert_eq!(Events::read(b"off").kept, Kept::Off);
    }

    #[test]
    fn a_recording_says_what_it_has() {
        let described = |text| Events::read(text).described(1_000).as_bytes().to_vec();
        assert_eq!(described(b""), b"100000 ns, last 1000 bytes");
        assert_eq!(described(b"off,first"), b"off");
        let longest = Events { limit_ns: u64::MAX, ..Events::read(b"all=:read,first") };
        let longest = longest.described(u64::MAX);
        assert!(
            longest.as_bytes().ends_with(b" bytes, some functions wholly") && !longest.is_cut()
        );
    }

    #[test]
    fn what_is_not_known_is_told() {
        for text in
            [&b"sometimes"[..], b"slow:100", b"slow:99999999999999999999s", b"64", b"all:1us"]
        {
            let events = Events::read(text);
            assert!(events.is_unknown, "{text:?}");
            assert_eq!(events.kept, Kept::Slow);
        }
    }
}
