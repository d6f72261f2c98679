//! The moments of the durations of a slot's calls, and how many calls one sample may stand for. No floating point: it
//! would change the application's exception flags.
//!
//! If one random call out of each block of N is timed, the standard error of the total of n calls is at most `√(N·n)
//! · σ`, where σ is the standard deviation of a call's duration. A block may be as long as the longest of these
//! three:
//!
//! * `(ε·S)²/(n·σ²)`: the error is a fraction ε of the total so far, S.
//! * `(δ·T)²/(n·σ²)`: the error is a fraction δ of the thread's time so far, T.
//! * `κ/σ`: if timing takes more of T than it may, samples are taken where they reduce the error most. Of all ways to
//!   distribute a number of samples over several slots, the error is least if each slot's number is proportional to
//!   its σ (Neyman's allocation). κ grows with the share of T that was spent.
//!
//! So heavy tails keep blocks short as long as that is affordable. A block's length is chosen from what is known
//! before it begins, so the estimate is unbiased whatever the order of the calls.

use chase_format::layout;

/// 1/ε for a standard error of 1.3 % of the total, and 1/δ for one of 0.02 % of the thread's time.
const PRECISION: u64 = 75;
const PRECISION_OF_LIFE: u64 = 5_000;
/// Errors of more than this many standard errors are not expected.
const MANY_ERRORS: u64 = 4;
/// The minimum assumed lifetime of a thread: an error of 20 µs doesn't matter.
const LEAST_LIFE_US: u64 = 100_000;
/// The share of a thread's time that timing may take, in 1/1024, including the cache misses that it causes; and κ in ticks at
/// exactly this share. κ grows with the eighth power of the share: with the fourth, timing took twice as much where calls
/// are uneven.
pub const BUDGET: u64 = 12;
const KAPPA: u64 = 4_000;
/// The minimum assumed squared coefficient of variation is one over this: clock reads and buckets are no finer.
const LEAST_SPREAD: u64 = 100;
/// After this many calls, the weight of earlier ones is halved.
const MEMORY: u64 = 1 << 18;
/// Calls are short if they take up to this many ns on average.
const SHORT_NS: u64 = 1_000;

/// A sample of this many means is an outlier, and is examined.
pub const OUTLIER: u64 = 16;

/// Sums over the durations of calls, in ticks.
#[derive(Clone, Copy)]
pub struct Moments {
    calls: u64,
    total: u64,
    squares: u64,
    /// Of all calls, whatever their weight.
    all_calls: u64,
    all_total: u64,
}

/// A thread's time, and how much of it the timing of short calls has taken.
#[derive(Clone, Copy)]
pub struct Life {
    /// The thread's time so far.
    pub ticks: u64,
    /// The clock's rate.
    pub ticks_per_us: u64,
    /// The share that timing has taken, in 1/1024.
    pub timing_share: u64,
}

impl Moments {
    /// The moments of no calls.
    pub const NONE: Self = Self { calls: 0, total: 0, squares: 0, all_calls: 0, all_total: 0 };

    /// Returns those of the calls in a histogram's buckets: the middle of each in ticks, and its number of calls, longest first;
    /// `None` if there are none. Leaves out as many of the longest calls as the thread was preempted, if they are outliers and
    /// take `least` ticks, long enough for that: durations are not uneven because the kernel has preempted the thread.
    pub fn of<I: Iterator<Item = (u64, u64)>>(
        buckets: impl Fn() -> I,
        preemptions: u64,
        least: u64,
    ) -> Option<Self> {
        let (mut all, mut total) = (0_u64, 0_u64);
        for (ticks, calls) in buckets() {
            all += calls;
            total = total.saturating_add(ticks.saturating_mul(calls));
        }
        let rough_mean = total.checked_div(all)?;
        let least = rough_mean.saturating_mul(OUTLIER).max(least);
        let mut left_out = preemptions;
        let mut moments = Self::NONE;
        for (ticks, calls) in buckets() {
            let ignored = if ticks > least { left_out.min(calls) } else { 0 };
            left_out -= ignored;
            moments.add(ticks, calls - ignored);
        }
        (!moments.is_empty()).then_some(moments)
    }

    /// Adds `calls` calls of `ticks` each.
    #[inline]
    pub fn add(&mut self, ticks: u64, calls: u64) {
        let total = ticks.saturating_mul(calls);
        self.all_calls += calls;
        self.all_total = self.all_total.saturating_add(total);
        self.calls += calls;
        self.total = self.total.saturating_add(total);
        self.squares = self.squares.saturating_add(ticks.saturating_mul(total));
        if self.calls > MEMORY {
            self.calls /= 2;
            self.total /= 2;
            self.squares /= 2;
        }
    }

    /// Whether a number of ticks is many times the error that the total may have.
    #[must_use]
    #[inline]
    pub fn is_much(&self, ticks: u64) -> bool {
        ticks > self.all_total / PRECISION * MANY_ERRORS
    }

    /// Whether there are no calls.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.calls == 0
    }

    /// Returns the longest block that is accurate enough; 0 if the calls are not short.
    #[must_use]
    pub fn longest_block(&self, life: Life) -> u64 {
        let Life { ticks, ticks_per_us, timing_share } = life;
        let calls = self.calls.clamp(1, u64::from(u32::MAX));
        // In 1/16 and 1/256 ticks.
        let mean = self.total.saturating_mul(16) / calls;
        if mean.saturating_mul(1000) > 16 * SHORT_NS * ticks_per_us {
            return 0;
        }
        let square = mean * mean;
        let of_squares = self.squares / calls * 256 + self.squares % calls * 256 / calls;
        let variance = of_squares.saturating_sub(square).max(square / LEAST_SPREAD).max(1);
        let life = ticks.max(LEAST_LIFE_US * ticks_per_us);
        let error = (self.all_total / PRECISION).max(life / PRECISION_OF_LIFE);
        let by_error = longest_within(error.saturating_mul(16), self.all_calls, variance);
        let by_cost = kappa(timing_share) * 16 / variance.isqrt().max(1);
        by_error.max(by_cost).min(layout::longest_block(self.all_calls))
    }
}

/// What one sample adds to the sums from which the error of an estimate is computed. Sums of these saturate: a reader knows then
/// that the error is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pairs {
    /// `w·(w − 1)`.
    pub pairs: u64,
    /// `w·(w − 1)·x`.
    pub ticks: u64,
    /// `w·(w − 1)·x²` in units of [`layout::SQUARES`].
    pub squares: u64,
}

impl Pairs {
    /// Those of a sample of x `ticks` that represents w = `weight` calls.
    #[must_use]
    #[inline]
    pub fn of_sample(weight: u32, ticks: u64) -> Self {
        let pairs = u64::from(weight) * u64::from(weight.saturating_sub(1));
        // (Before the division, the product of a weight of thousands and the square of a millisecond has more than 64 bits.)
        let squares = u128::from(pairs) * u128::from(ticks.saturating_mul(ticks));
        let squares = (squares / u128::from(layout::SQUARES)).min(u128::from(u64::MAX)) as u64;
        Self { pairs, ticks: pairs.saturating_mul(ticks), squares }
    }
}

/// Returns κ in ticks if timing has taken this share of a thread's time, in 1/1024.
fn kappa(share: u64) -> u64 {
    // A ratio in 1/16, and at most 8: its fourth power has 28 bits, of which 16 are the fraction.
    let fourth = (share.min(1024) * 16 / BUDGET).min(128).pow(4);
    (((KAPPA * fourth) >> 16) * fourth) >> 16
}

/// Returns the longest block with which the total of so many calls has a standard error of at most `error`.
fn longest_within(error: u64, calls: u64, variance: u64) -> u64 {
    // Shifted so that its square fits into 64 bits.
    let shift = (u64::BITS / 2).saturating_sub(error.leading_zeros());
    let error = error >> shift;
    error * error / (calls.saturating_mul(variance) >> (2 * shift)).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TICKS_PER_US: u64 = 1_000;

    fn life(seconds: u64, timing_share: u64) -> Life {
        Life { ticks: seconds * 1_000_000 * TICKS_PER_US, ticks_per_us: TICKS_PER_US, timing_share }
    }

    /// Makes so many calls, half of them of each of these durations.
    fn moments(calls: u64, durations: [u64; 2]) -> Moments {
        let mut moments = Moments::NONE;
        durations.iter().for_each(|&ticks| moments.add(ticks, calls / 2));
        moments
    }

    #[test]
    fn long_calls_are_all_timed() {
        let ticks = SHORT_NS * TICKS_PER_US / 1_000 + 1;
        assert_eq!(moments(1_000, [ticks, ticks]).longest_block(life(1, 0)), 0);
        assert!(moments(1_000, [ticks / 2, ticks / 2]).longest_block(life(1, 0)) > 0);
    }

    #[test]
    fn uneven_calls_have_shorter_blocks() {
        let even = moments(10_000, [1_000, 1_000]).longest_block(life(1, 0));
        let uneven = moments(10_000, [1, 1_999]).longest_block(life(1, 0));
        assert!(uneven < even, "{uneven} {even}");
    }

    #[test]
    fn blocks_grow_with_the_share_that_timing_takes() {
        // So few calls that their error alone would make blocks short.
        let calls = moments(100_000, [10, 400]);
        let blocks: std::vec::Vec<u64> =
            [0, BUDGET, 4 * BUDGET, 1024].map(|share| calls.longest_block(life(0, share))).into();
        assert!(blocks.is_sorted() && blocks[0] < blocks[3], "{blocks:?}");
    }

    /// Checks the bound by which the block is chosen: `√(N·n) · σ` is at most the fraction of the total, or of the
    /// thread's time.
    #[test]
    fn the_error_is_within_what_it_may_be() {
        for durations in [[90, 110], [10, 190], [1, 999]] {
            let (calls, life) = (50_000, life(0, 0));
            let block = moments(calls, durations).longest_block(life);
            let mean = durations.iter().sum::<u64>() as f64 / 2.0;
            let sigma = durations[0].abs_diff(durations[1]) as f64 / 2.0;
            let error = (block as f64 * calls as f64).sqrt() * sigma;
            let by_total = mean * calls as f64 / PRECISION as f64;
            let by_life = (LEAST_LIFE_US * TICKS_PER_US / PRECISION_OF_LIFE) as f64;
            assert!(error <= by_total.max(by_life) * 1.01, "{durations:?}: {block}");
        }
    }

    #[test]
    fn preempted_calls_are_left_out() {
        let of = |buckets: &[(u64, u64)], preemptions| {
            let moments = Moments::of(|| buckets.iter().copied(), preemptions, 5_000);
            moments.map(|moments| (moments.calls, moments.total))
        };
        let buckets = [(9_000, 1), (6_000, 3), (100, 1_000)];
        assert_eq!(of(&buckets, 0), Some((1_004, 127_000)));
        assert_eq!(of(&buckets, 2), Some((1_002, 112_000)));
        assert_eq!(of(&buckets, 50), Some((1_000, 100_000)));
        // Long enough, but not among these; and outliers that are too short.
        assert_eq!(of(&[(9_000, 2), (6_000, 2)], 4), Some((4, 30_000)));
        assert_eq!(of(&[(5_000, 1), (100, 1_000)], 4), Some((1_001, 105_000)));
        assert_eq!(of(&[], 4), None);
    }

    #[test]
    fn no_sums_overflow() {
        let mut moments = Moments::NONE;
        assert!(moments.is_empty());
        moments.add(u64::MAX, u64::from(u32::MAX));
        moments.add(u64::MAX, 1);
        assert_eq!(moments.longest_block(life(1, 1024)), 0);
        assert!(
            Moments::NONE.longest_block(Life { ticks: u64::MAX, ticks_per_us: 1, timing_share: 0 })
                > 0
        );
    }

    #[test]
    fn the_sums_of_a_sample_are_exact_until_they_saturate() {
        assert_eq!(Pairs::of_sample(1, 1_000), Pairs { pairs: 0, ticks: 0, squares: 0 });
        assert_eq!(Pairs::of_sample(3, 32), Pairs { pairs: 6, ticks: 192, squares: 24 });
        // A sample of a millisecond for 4,096 calls: its square counts as what it is.
        let (pairs, ticks) = (4_096 * 4_095, 3_000_000);
        let squares = (pairs as f64 * ticks as f64 * ticks as f64 / 256.0) as u64;
        let found = Pairs::of_sample(4_096, ticks);
        assert_eq!((found.pairs, found.ticks), (pairs, pairs * ticks));
        assert!(found.squares.abs_diff(squares) <= squares >> 40, "{found:?}, not {squares}");
        let most = Pairs::of_sample(u32::MAX, u64::MAX);
        assert_eq!(most.pairs, u64::from(u32::MAX) * u64::from(u32::MAX - 1));
        assert_eq!((most.ticks, most.squares), (u64::MAX, u64::MAX));
        assert_eq!(Pairs::of_sample(0, u64::MAX), Pairs { pairs: 0, ticks: 0, squares: 0 });
    }

    #[test]
    fn old_durations_are_forgotten() {
        let mut moments = moments(MEMORY, [5_000, 5_000]);
        (0..20).for_each(|_| moments.add(10, MEMORY));
        assert!(moments.longest_block(life(1, 0)) > 0);
    }

    #[test]
    fn kappa_grows_with_the_eighth_power() {
        assert_eq!(kappa(0), 0);
        assert_eq!(kappa(BUDGET), (KAPPA * 16_u64.pow(8)) >> 32);
        assert_eq!(kappa(2 * BUDGET), kappa(BUDGET) << 8);
        assert_eq!(kappa(1024), kappa(8 * BUDGET));
    }
}
