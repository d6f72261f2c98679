//! The minimum durations of calls for which more is done than on the call path: asking for time off the CPU, and
//! recording events.

use core::sync::atomic::{AtomicU64, Ordering};

use crate::abi::LONG;

/// After calls of so many ticks, the thread asks how long it was off the CPU. The maximum as long as threads don't
/// ask.
static ASK_LIMIT: AtomicU64 = AtomicU64::new(u64::MAX);
/// Calls of so many ticks may become events. The maximum as long as no events are recorded.
static EVENT_LIMIT: AtomicU64 = AtomicU64::new(u64::MAX);

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

/// Sets the limit that the call path compares with: the lower of both.
fn choose() {
    LONG.store(EVENT_LIMIT.load(Ordering::Relaxed).min(ask_limit()), Ordering::Relaxed);
}
