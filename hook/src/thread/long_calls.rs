//! The minimum durations of calls for which more is done than on the call path: asking for time off the CPU, recording
//! events, noting from where they were made, and reading texts.

use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use chase_format::histogram::MAX_EXPONENT;

use crate::abi::{EVENTS_BELOW, LONG};

/// After calls of so many ticks, the thread asks how long it was off the CPU. The maximum as long as threads don't
/// ask.
static ASK_LIMIT: AtomicU64 = AtomicU64::new(u64::MAX);
/// Calls of so many ticks may become events. The maximum as long as no events are recorded.
static EVENT_LIMIT: AtomicU64 = AtomicU64::new(u64::MAX);

/// After calls of so many ticks (30 to 50 µs on most machines), it is noted from where they were made, and the text that they were
/// passed is read.
pub(crate) const LONG_TICKS: u64 = 100_000;
/// The same; the maximum as long as texts are not recorded.
static TEXT_LIMIT: AtomicU64 = AtomicU64::new(u64::MAX);

/// Whether all calls are events.
static ALL_ARE_EVENTS: AtomicBool = AtomicBool::new(false);

/// Returns the minimum duration, in ticks, of calls after which threads ask.
pub(crate) fn ask_limit() -> u64 {
    ASK_LIMIT.load(Ordering::Relaxed)
}

/// Sets the minimum duration of calls after which threads ask.
pub(crate) fn set_ask_limit(ticks: u64) {
    ASK_LIMIT.store(ticks, Ordering::Relaxed);
    choose();
}

/// Sets the minimum duration of calls that may become events.
pub(super) fn set_event_limit(ticks: u64) {
    EVENT_LIMIT.store(ticks, Ordering::Relaxed);
    choose();
}

/// Makes all calls events, whatever their duration.
pub(super) fn make_all_events() {
    ALL_ARE_EVENTS.store(true, Ordering::Relaxed);
    set_event_limit(0);
}

/// Sets whether texts are recorded.
pub(crate) fn record_texts(on: bool) {
    TEXT_LIMIT.store(if on { LONG_TICKS } else { u64::MAX }, Ordering::Relaxed);
    choose();
}

/// Returns the minimum duration, in ticks, of calls after which their text is read.
pub(crate) fn text_limit() -> u64 {
    TEXT_LIMIT.load(Ordering::Relaxed)
}

/// Sets the limit that the call path compares with: the lowest of all. If all calls are events, also sets below which
/// duration the call path records them itself: calls to be asked about, those whose place is noted, and those without a bucket of their own, take
/// the slow half.
fn choose() {
    let asked = ask_limit().min(LONG_TICKS);
    LONG.store(EVENT_LIMIT.load(Ordering::Relaxed).min(asked), Ordering::Relaxed);
    if ALL_ARE_EVENTS.load(Ordering::Relaxed) {
        EVENTS_BELOW.store(asked.min(1 << MAX_EXPONENT), Ordering::Relaxed);
    }
}
