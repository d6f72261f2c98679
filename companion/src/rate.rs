//! Chooses how often samples are taken.
//!
//! The cost of a sample is mainly that of the timer's interrupt, which takes 1 µs on bare machines and 10 to 30 µs in
//! virtual ones. So it is measured, and the highest rate is chosen that costs at most 1 %.

use std::hint::black_box;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use chase_format::session::MOST_SAMPLES;

use crate::perf::Event;

/// Samples per second. These are primes, so that what is in step with a clock is not always sampled, or never.
const RATES: [u64; 3] = [997, 499, 251];
/// The rate if the cost is unknown.
const UNKNOWN: u64 = 499;
/// Samples may take one part in so many of a processor's time.
const MOST_PART: u64 = 100;

/// The rate that is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rate {
    /// No samples.
    Off,
    /// This many per second.
    Hz(u64),
    /// As many as cost little.
    Measured,
}

impl Rate {
    /// Parses `CHASE_SAMPLE`.
    ///
    /// # Errors
    /// If the value is invalid.
    pub fn wished(wish: Option<&str>) -> Result<Self> {
        const MOST: u64 = MOST_SAMPLES as u64;
        match wish {
            None | Some("") => Ok(Self::Measured),
            Some("off") => Ok(Self::Off),
            Some(wish) => match wish.parse() {
                Ok(hz @ 1..=MOST) => Ok(Self::Hz(hz)),
                _ => bail!("CHASE_SAMPLE must be off, or samples per second, from 1 to {MOST}"),
            },
        }
    }

    /// Returns the number of samples per second; 0 for none. Takes 6 ms if the cost has to be measured.
    #[must_use]
    pub fn hz(self) -> u64 {
        match self {
            Self::Off => 0,
            Self::Hz(hz) => hz,
            Self::Measured => sample_ns().map_or(UNKNOWN, affordable),
        }
    }

    /// Returns the rate for a program that waits for the first sample: nothing is measured.
    #[must_use]
    pub fn unprivileged_hz(self) -> u64 {
        if self == Self::Measured { UNKNOWN } else { self.hz() }
    }
}

/// Returns the highest rate at which samples that take `sample_ns` each cost at most 1 %, or else the lowest rate.
fn affordable(sample_ns: u64) -> u64 {
    let fits = |hz: &u64| sample_ns * hz * MOST_PART <= 1_000_000_000;
    RATES.into_iter().find(fits).unwrap_or(RATES[RATES.len() - 1])
}

/// Samples per second while their cost is measured.
const OFTEN: u64 = 10_000;
const ROUNDS: usize = 5;
const FEWEST: usize = 2;
/// No round begins later than this, since the application waits.
const LONGEST: Duration = Duration::from_millis(10);
/// The time that a round takes without samples.
const ROUND_NS: u64 = 500_000;
/// No interrupt takes less: such a difference shows that all rounds without samples were disturbed.
const LEAST_NS: u64 = 200;

/// Measures what a sample costs the thread that it is taken of, in ns; returns `None` if that is not possible, as on a
/// machine that is too busy.
#[must_use]
pub fn sample_ns() -> Option<u64> {
    let mut turns = 1 << 14;
    while work_ns(turns) < ROUND_NS / 2 {
        turns *= 2;
    }
    // Measured in turns; the least disturbed round counts.
    let (mut without, mut with) = (u64::MAX, u64::MAX);
    let begun = Instant::now();
    for round in 0..ROUNDS {
        // On a busy machine a round may take long; with too few rounds, the result is unreliable.
        if begun.elapsed() > LONGEST {
            if round < FEWEST {
                return None;
            }
            break;
        }
        without = without.min(work_ns(turns));
        let event = Event::of_this_thread(OFTEN).ok()?;
        with = with.min(work_ns(turns));
        drop(event);
    }
    let samples = with * OFTEN / 1_000_000_000;
    with.checked_sub(without)?.checked_div(samples).filter(|&ns| ns >= LEAST_NS)
}

/// Measures how long a piece of work takes.
fn work_ns(turns: u64) -> u64 {
    let start = Instant::now();
    let mut number = turns;
    for _ in 0..turns {
        number = black_box(number).wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
    }
    black_box(number);
    start.elapsed().as_nanos() as u64
}

#[cfg(test)]
mod tests {
    use super::{Rate, affordable, sample_ns};

    #[test]
    fn the_rate_is_the_highest_that_costs_little() {
        assert_eq!(
            [900, 10_000, 12_000, 20_040, 25_000, 90_000].map(affordable),
            [997, 997, 499, 499, 251, 251]
        );
    }

    #[test]
    fn wishes_are_kept() {
        assert_eq!(Rate::wished(Some("77")).expect("a number").hz(), 77);
        assert_eq!(Rate::wished(Some("off")).expect("a word").hz(), 0);
        assert_eq!(Rate::wished(Some("")).expect("nothing"), Rate::Measured);
        assert!(Rate::wished(Some("0")).is_err() && Rate::wished(Some("many")).is_err());
    }

    #[test]
    fn a_sample_costs_something() {
        // On a busy machine, it may be impossible to measure.
        let costs: Vec<u64> = (0..20).filter_map(|_| sample_ns()).collect();
        assert!(costs.iter().all(|ns| (50..500_000).contains(ns)), "{costs:?}");
        assert!(!costs.is_empty());
    }
}
