//! The recording's clock: the time stamp counter where it can be trusted, otherwise `CLOCK_MONOTONIC`. Also pairs of
//! both, by which a report converts ticks to nanoseconds.

use core::ffi::CStr;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use chase_format::layout::{CLOCK_MONOTONIC, CLOCK_TSC, ClockPair};

use crate::abi::FROZEN_TICKS;
use crate::{arch, sys};

/// Chooses the clock: `CLOCK_TSC` or `CLOCK_MONOTONIC`.
pub(crate) fn choose() {
    let trusted = is_steady() && sys::may_read_time_stamp();
    let kind = if trusted { CLOCK_TSC } else { CLOCK_MONOTONIC };
    KIND.store(kind, Ordering::Relaxed);
    arch::use_time_stamp(trusted);
}

/// Whether the time stamp counter runs at a constant rate. The kernel only uses it as its clock source then, which is
/// quick to read; asking the processor takes tens of microseconds under a hypervisor.
fn is_steady() -> bool {
    const SOURCE: &CStr = c"/sys/devices/system/clocksource/clocksource0/current_clocksource";
    let mut buffer = [0; 16];
    sys::read_file(SOURCE, &mut buffer) == b"tsc\n" || arch::time_stamp_is_invariant()
}

/// `CLOCK_TSC`, `CLOCK_MONOTONIC`, or [`FROZEN`].
static KIND: AtomicU32 = AtomicU32::new(CLOCK_TSC);
/// The clock stands still, because the process may not read any.
const FROZEN: u32 = u32::MAX;

/// Returns the clock's kind.
pub(crate) fn kind() -> u32 {
    KIND.load(Ordering::Relaxed)
}

/// Returns the current time in ticks.
pub(crate) fn now() -> u64 {
    match kind() {
        CLOCK_TSC => arch::time_stamp(),
        FROZEN => FROZEN_TICKS.load(Ordering::Relaxed),
        _ => sys::clock_ns(libc::CLOCK_MONOTONIC),
    }
}

/// Whether the clock is the time stamp counter.
pub(crate) fn is_time_stamp() -> bool {
    kind() == CLOCK_TSC
}

/// The process's first pair, from which the clock's rate is computed before the process ends.
static FIRST: [AtomicU64; 2] = [AtomicU64::new(0), AtomicU64::new(0)];
static TICKS_PER_US: AtomicU64 = AtomicU64::new(0);

/// Stores the process's first pair.
pub(crate) fn begin(first: &ClockPair) {
    FIRST[0].store(first.ticks, Ordering::Relaxed);
    FIRST[1].store(first.monotonic_ns, Ordering::Relaxed);
}

/// Returns the ticks per microsecond, within a few percent; `None` as long as too little time has passed.
pub(crate) fn ticks_per_us() -> Option<u64> {
    const LONG_ENOUGH_NS: u64 = 200_000;
    let known = TICKS_PER_US.load(Ordering::Relaxed);
    if known > 0 {
        return Some(known);
    }
    if sys::is_confined_here() {
        return None;
    }
    let (ticks, ns) = (now(), sys::clock_ns(libc::CLOCK_MONOTONIC));
    let ticks = ticks.saturating_sub(FIRST[0].load(Ordering::Relaxed));
    let ns = ns.saturating_sub(FIRST[1].load(Ordering::Relaxed));
    if ns < LONG_ENOUGH_NS {
        return None;
    }
    let rate = ticks.saturating_mul(1000) / ns;
    TICKS_PER_US.store(rate, Ordering::Relaxed);
    (rate > 0).then_some(rate)
}

/// Returns the time in ticks that is `ns` by `CLOCK_MONOTONIC`, and past; the present one if it can't be told.
pub(crate) fn ticks_at(ns: u64) -> u64 {
    let ClockPair { ticks, monotonic_ns, .. } = pair();
    let ago_ns = monotonic_ns.saturating_sub(ns);
    let rate = if is_time_stamp() { ticks_per_us() } else { Some(1000) };
    rate.map_or(ticks, |rate| ticks.saturating_sub(ago_ns.saturating_mul(rate) / 1000))
}

/// Stops the clock, before a filter of system calls forbids reading it.
pub(crate) fn freeze() {
    FROZEN_TICKS.store(now(), Ordering::Relaxed);
    KIND.store(FROZEN, Ordering::Relaxed);
    arch::use_time_stamp(false);
}

/// Reads the clocks at one moment: of a few attempts, the one with the least time between its reads.
pub(crate) fn pair() -> ClockPair {
    const TRIES: usize = 5;
    let mut best = ClockPair::default();
    let mut best_width = u64::MAX;
    for _ in 0..TRIES {
        let before = now();
        let monotonic_ns = sys::clock_ns(libc::CLOCK_MONOTONIC);
        let after = now();
        let width = after.wrapping_sub(before);
        if width < best_width {
            best_width = width;
            best = ClockPair { ticks: before + width / 2, monotonic_ns, realtime_ns: 0 };
        }
    }
    best.realtime_ns = sys::clock_ns(libc::CLOCK_REALTIME);
    best
}
