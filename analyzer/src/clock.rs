//! Converts the recording's clock to nanoseconds.

use chase_recorder::layout::{CLOCK_MONOTONIC, ClockPair, Header};
use serde::Serialize;

/// A moment or a duration by a recording's own clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct Ticks(pub u64);

/// Nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct Ns(pub u64);

impl Ns {
    /// Rounds; negative values and NaN become 0.
    #[must_use]
    pub fn from_f64(ns: f64) -> Self {
        Self(ns.round() as u64)
    }

    /// Returns the number of nanoseconds.
    #[must_use]
    pub fn as_f64(self) -> f64 {
        self.0 as f64
    }

    /// Returns the number of seconds.
    #[must_use]
    pub fn seconds(self) -> f64 {
        self.as_f64() / 1e9
    }
}

/// If pairs are closer than this, another process's rate is better.
const GOOD_INTERVAL_NS: u64 = 10_000_000;

/// Converts between ticks and nanoseconds: linearly between the two pairs in the header.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Clock {
    start: ClockPair,
    kind: u32,
    ns_per_tick: f64,
    /// Time between the pairs that `ns_per_tick` is computed from; 0 if it is only a guess.
    interval_ns: u64,
}

impl Clock {
    /// Returns the clock of a recording.
    #[must_use]
    pub fn new(header: &Header) -> Self {
        let (start, latest) = (header.clock_start, header.clock_latest);
        let clock = Self { start, kind: header.clock_kind, ns_per_tick: 1.0, interval_ns: 0 };
        if header.clock_kind == CLOCK_MONOTONIC {
            return Self { interval_ns: u64::MAX, ..clock };
        }
        // In a fork's child, the latest pair may be its parent's, from before its start.
        let ticks = latest.ticks.abs_diff(start.ticks);
        let ns = latest.monotonic_ns.abs_diff(start.monotonic_ns);
        let ns_per_tick = ns as f64 / ticks as f64;
        let both_taken = start.monotonic_ns != 0 && latest.monotonic_ns != 0;
        // 100 MHz to 20 GHz; other rates are implausible for a processor's clock.
        if !both_taken || !(0.05..=10.0).contains(&ns_per_tick) {
            return clock;
        }
        Self { ns_per_tick, interval_ns: ns, ..clock }
    }

    /// Whether the rate was measured. If not, a tick is assumed to be a nanosecond.
    #[must_use]
    pub fn is_calibrated(&self) -> bool {
        self.interval_ns > 0
    }

    /// Uses the rate of `other`, a recording of the same boot of the same machine, if that was measured over a longer
    /// time, and the own one not for long enough.
    pub fn refine(&mut self, other: &Self) {
        if self.kind == other.kind
            && self.interval_ns < GOOD_INTERVAL_NS
            && self.interval_ns < other.interval_ns
        {
            self.ns_per_tick = other.ns_per_tick;
            self.interval_ns = other.interval_ns;
        }
    }

    /// Returns over how long the rate was measured, in ns.
    pub(crate) fn interval_ns(&self) -> u64 {
        self.interval_ns
    }

    /// Returns the nanoseconds of a tick.
    #[must_use]
    pub fn ns_per_tick(&self) -> f64 {
        self.ns_per_tick
    }

    /// Converts a moment to `CLOCK_MONOTONIC`.
    #[must_use]
    pub fn monotonic(&self, moment: Ticks) -> Ns {
        let since = (i128::from(moment.0) - i128::from(self.start.ticks)) as f64;
        let ns = i128::from(self.start.monotonic_ns) + (since * self.ns_per_tick).round() as i128;
        Ns(ns.clamp(0, i128::from(u64::MAX)) as u64)
    }

    /// Converts a time of `CLOCK_MONOTONIC` to a moment.
    #[must_use]
    pub fn ticks_at(&self, ns: Ns) -> Ticks {
        let since = (i128::from(ns.0) - i128::from(self.start.monotonic_ns)) as f64;
        let ticks = i128::from(self.start.ticks) + (since / self.ns_per_tick).round() as i128;
        Ticks(ticks.clamp(0, i128::from(u64::MAX)) as u64)
    }
}

#[cfg(test)]
mod tests {
    use chase_recorder::{builder::Builder, layout::CLOCK_TSC};

    use super::*;

    fn tsc(interval_ns: u64, ticks_per_ns: f64) -> Header {
        let mut header = Builder::new().header;
        header.clock_kind = CLOCK_TSC;
        let start = header.clock_start;
        header.clock_latest = ClockPair {
            ticks: start.ticks + (interval_ns as f64 * ticks_per_ns) as u64,
            monotonic_ns: start.monotonic_ns + interval_ns,
            realtime_ns: start.realtime_ns + interval_ns,
        };
        header
    }

    #[test]
    fn moments_survive_the_way_there_and_back() {
        let header = tsc(1_000_000_000, 2.5);
        let clock = Clock::new(&header);
        let moment = Ticks(header.clock_start.ticks + 2_500);
        assert_eq!(clock.monotonic(moment), Ns(header.clock_start.monotonic_ns + 1_000));
        assert_eq!(clock.ticks_at(clock.monotonic(moment)), moment);
    }

    #[test]
    fn a_forks_child_has_its_parents_rate() {
        let mut header = tsc(1_000_000_000, 2.5);
        std::mem::swap(&mut header.clock_start, &mut header.clock_latest);
        let clock = Clock::new(&header);
        assert_eq!(clock.ns_per_tick(), 0.4);
        assert_eq!(clock.monotonic(Ticks(header.clock_start.ticks)).0, 2_000_000_000);
    }

    #[test]
    fn a_clock_never_calibrated_borrows_a_rate() {
        let mut header = tsc(1_000_000_000, 2.5);
        let good = Clock::new(&header);
        header.clock_latest = ClockPair::default();
        let mut clock = Clock::new(&header);
        assert!(!clock.is_calibrated());
        clock.refine(&good);
        assert!(clock.is_calibrated());
        assert_eq!(clock.ns_per_tick(), 0.4);
    }

    #[test]
    fn a_long_measured_rate_is_not_replaced() {
        let mut clock = Clock::new(&tsc(1_000_000_000, 2.5));
        clock.refine(&Clock::new(&tsc(9_000_000_000, 2.0)));
        assert_eq!(clock.ns_per_tick(), 0.4);
    }
}
