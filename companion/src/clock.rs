//! The time.

/// Reads a clock in ns. The eBPF program and the session's file use `CLOCK_MONOTONIC`.
#[must_use]
pub fn now_ns(clock: libc::clockid_t) -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel fills in the structure.
    unsafe { libc::clock_gettime(clock, &raw mut now) };
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Converts a time of `CLOCK_MONOTONIC` to ns since 1970.
pub(crate) fn realtime_of(monotonic_ns: u64) -> u64 {
    let ago_ns = now_ns(libc::CLOCK_MONOTONIC).saturating_sub(monotonic_ns);
    now_ns(libc::CLOCK_REALTIME).saturating_sub(ago_ns)
}
