//! When a slot's calls are reviewed, and how they are timed from then on.

use crate::countdown::LONGEST;
use crate::moments::{BUDGET, Life};

/// The shortest block: a sample costs as much as several timed calls.
pub const SHORTEST_BLOCK: u64 = 8;
/// A slot is reviewed before the timing of its calls takes one part in so many of the time that a thread runs.
const UNLOOKED_PART: u64 = 400;
/// Calls are frequent if they are at most so many ns apart; or ten times as many, of the time that the thread runs, if timing
/// takes half of what it may take of that, perhaps for many such functions together. (If it takes more than it may, all are.)
const MANY_NS: u64 = 10_000;
const MANY_TOGETHER_NS: u64 = 100_000;

/// How the next calls of a slot are timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The number of calls of which one is timed; 0: all are.
    pub block: u32,
    /// Whether the others get frames.
    pub framed: bool,
}

impl Plan {
    /// All calls are timed.
    pub const ALL: Self = Self { block: 0, framed: false };

    /// One of `block` calls is timed, unless that is too few.
    #[must_use]
    pub fn with_block(block: u64, framed: bool) -> Self {
        if block < SHORTEST_BLOCK { Self::ALL } else { Self { block: block as u32, framed } }
    }
}

/// Whether calls that are so far apart are frequent. `life` returns the thread's life and for how many ticks of it the thread
/// has run; it is only called if that matters.
pub fn are_frequent(apart_ns: u64, life: impl FnOnce() -> (Life, u64)) -> bool {
    if apart_ns <= MANY_NS {
        return true;
    }
    let (Life { ticks, ticks_per_us, timing_share }, ran) = life();
    // Of that time, the thread has run about as large a part as of its life.
    let ran_us = ran.min(ticks) / ticks_per_us.max(1);
    let apart_ran_ns = apart_ns.saturating_mul(ran_us) / (ticks / ticks_per_us.max(1)).max(1);
    timing_share > BUDGET || timing_share > BUDGET / 2 && apart_ran_ns <= MANY_TOGETHER_NS
}

/// Returns the number of calls until the next review of a slot whose calls are all timed, `calls` after the previous
/// review: twice as many, but fewer if timing them would take too much of the thread's time, and at least `least`. The thread
/// has run for `ran` ticks, and timing a call takes `cost` ticks.
#[must_use]
pub fn until_next_look(ran: u64, cost: u64, calls: u32, least: u32) -> u32 {
    let affordable = ran / UNLOOKED_PART / cost.max(1);
    let affordable = affordable.min(u64::from(LONGEST)) as u32;
    calls.saturating_mul(2).min(LONGEST).min(affordable).max(least)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TICKS_PER_US: u64 = 1_000;

    /// A life of a second.
    fn life(timing_share: u64) -> Life {
        Life { ticks: 1_000_000 * TICKS_PER_US, ticks_per_us: TICKS_PER_US, timing_share }
    }

    #[test]
    fn short_blocks_are_not_worthwhile() {
        assert_eq!(Plan::with_block(SHORTEST_BLOCK - 1, true), Plan::ALL);
        let plan = Plan::with_block(SHORTEST_BLOCK, true);
        assert_eq!(plan, Plan { block: SHORTEST_BLOCK as u32, framed: true });
    }

    #[test]
    fn calls_close_to_each_other_are_frequent_at_once() {
        assert!(are_frequent(MANY_NS, || unreachable!("it costs a system call")));
        assert!(!are_frequent(MANY_NS + 1, || (life(0), 0)));
    }

    #[test]
    fn others_are_frequent_if_timing_takes_much() {
        let always = life(0).ticks;
        let are_frequent = |apart, share, ran| are_frequent(apart, || (life(share), ran));
        assert!(!are_frequent(MANY_TOGETHER_NS, BUDGET / 2, always));
        assert!(are_frequent(MANY_TOGETHER_NS, BUDGET / 2 + 1, always));
        assert!(!are_frequent(MANY_TOGETHER_NS + 1, BUDGET, always));
        // Of the time that the thread runs, these are half as far apart.
        assert!(are_frequent(2 * MANY_TOGETHER_NS, BUDGET, always / 2));
        assert!(are_frequent(u64::MAX, BUDGET + 1, always));
        let new = Life { ticks: 0, ticks_per_us: 0, timing_share: BUDGET };
        assert!(super::are_frequent(u64::MAX, || (new, u64::MAX)));
    }

    #[test]
    fn reviews_are_twice_as_far_apart_each_time() {
        assert_eq!(until_next_look(u64::MAX, 50, 1_000, 256), 2_000);
        assert_eq!(until_next_look(u64::MAX, 0, u32::MAX, 256), LONGEST);
        // Timing 500 calls takes a part of the time that the thread has run.
        assert_eq!(until_next_look(50 * 500 * UNLOOKED_PART, 50, 1_000, 256), 500);
        assert_eq!(until_next_look(0, 50, 1_000, 256), 256);
    }
}
