//! How often samples are taken.
//!
//! What a sample costs is above all the interrupt of a timer, which takes 1 µs on bare machines and 10 to 30 in virtual
//! ones. So it is measured, and the rate is the highest that costs at most 1 %.

use std::hint::black_box;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use crate::perf::Event;

/// Samples a second: primes, so that nothing that comes in step with a clock is always met, or never.
const RATES: [u64; 3] = [997, 499, 251];
/// Where the cost is not known.
const UNKNOWN: u64 = 499;
/// Of the time of a processor, one part in so many.
const MOST_PART: u64 = 100;

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rate {
    /// No samples.
    Off,
    /// So many a second.
    Hz(u64),
    /// As many as cost little.
    Measured,
}

impl Rate {
    /// What `CHASE_SAMPLE` says.
    ///
    /// # Errors
    /// If it is nonsense.
    pub fn wished(wish: Option<&str>) -> Result<Self> {
        const MOST: u64 = 10_000;
        match wish {
            None | Some("") => Ok(Self::Measured),
            Some("off") => Ok(Self::Off),
            Some(wish) => match wish.parse() {
                Ok(hz @ 1..=MOST) => Ok(Self::Hz(hz)),
                _ => bail!("CHASE_SAMPLE must be off, or samples per second, from 1 to {MOST}"),
            },
        }
    }

    /// Samples per second; 0 for none. Takes 6 ms where it has to be measured.
    #[must_use]
    pub fn hz(self) -> u64 {
        match self {
            Self::Off => 0,
            Self::Hz(hz) => hz,
            Self::Measured => sample_ns().map_or(UNKNOWN, affordable),
        }
    }

    /// The same where a program waits for the first sample: nothing is measured.
    #[must_use]
    pub fn unprivileged_hz(self) -> u64 {
        if self == Self::Measured { UNKNOWN } else { self.hz() }
    }
}

/// The highest rate at which samples of so much each take at most 1 %, or the lowest there is.
fn affordable(sample_ns: u64) -> u64 {
    let fits = |hz: &u64| sample_ns * hz * MOST_PART <= 1_000_000_000;
    RATES.into_iter().find(fits).unwrap_or(RATES[RATES.len() - 1])
}

/// Samples a second while it is measured what one costs.
const OFTEN: u64 = 10_000;
const ROUNDS: usize = 5;
const FEWEST: usize = 2;
/// A round begins no later than that; the application waits.
const LONGEST: Duration = Duration::from_millis(10);
/// Time that a round takes without samples.
const ROUND_NS: u64 = 500_000;

/// What a sample takes of the thread that it is taken of, in ns; `None` where that can't be told.
#[must_use]
pub fn sample_ns() -> Option<u64> {
    let mut turns = 1 << 14;
    while work_ns(turns) < ROUND_NS / 2 {
        turns *= 2;
    }
    // In turns, each with the least disturbance.
    let (mut without, mut with) = (u64::MAX, u64::MAX);
    let begun = Instant::now();
    for round in 0..ROUNDS {
        // On a busy machine a round may last; what little was seen then tells nothing.
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
    with.checked_sub(without)?.checked_div(samples)
}

/// What it takes to do a piece of work.
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
        // Where others run all the time, it can't be told.
        let costs: Vec<u64> = (0..20).filter_map(|_| sample_ns()).collect();
        assert!(costs.iter().all(|ns| (50..500_000).contains(ns)), "{costs:?}");
        assert!(!costs.is_empty());
    }
}
