//! Which calls are long enough for more than the call path does: those that the thread asks about, and those that become events.

use core::sync::atomic::{AtomicU64, Ordering};

use crate::abi::LONG;

/// Calls that took so many ticks are asked about: whether the thread ran. Never as long as nobody asks.
static ASK_LIMIT: AtomicU64 = AtomicU64::new(u64::MAX);
/// Those that took so many may become events. Never as long as none are kept.
static EVENT_LIMIT: AtomicU64 = AtomicU64::new(u64::MAX);

/// From how many ticks on calls are asked about.
pub(crate) fn ask_limit() -> u64 {
    ASK_LIMIT.load(Ordering::Relaxed)
}

/// From now on, calls that take so many ticks are asked about.
pub(crate) fn set_ask_limit(ticks: u64) {
    ASK_LIMIT.store(ticks, Ordering::Relaxed);
    choose();
}

/// From now on, calls that take so many ticks may become events.
pub(super) fn set_event_limit(ticks: u64) {
    EVENT_LIMIT.store(ticks, Ordering::Relaxed);
    choose();
}

/// The call path compares with the lower one.
fn choose() {
    LONG.store(EVENT_LIMIT.load(Ordering::Relaxed).min(ask_limit()), Ordering::Relaxed);
}
