//! How well a distribution is known if only some of the calls were timed.

use chase_recorder::histogram::bucket_of;
use chase_recorder::reader::Histogram;

/// A quantile of an estimated distribution only counts as known if at least this many timed calls took longer, and
/// both ends of its 95 % confidence interval are in its bucket or the next.
const CALLS_BEYOND: f64 = 10.0;
/// 95 % of a normal distribution are within this many standard deviations.
pub(crate) const NORMAL_95: f64 = 1.96;

/// The calls behind a histogram.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Evidence {
    /// The number of calls that it stands for.
    pub(crate) calls: u64,
    /// The number of those that were timed.
    pub(crate) timed: u64,
    /// Σ w², where w is the number of calls that each of them stands for.
    pub(crate) squared_weights: f64,
}

impl Evidence {
    pub(crate) fn add(&mut self, other: Self) {
        self.calls = self.calls.saturating_add(other.calls);
        self.timed = self.timed.saturating_add(other.timed);
        self.squared_weights += other.squared_weights;
    }

    /// Whether only some of the calls were timed.
    pub(crate) fn is_partial(self) -> bool {
        self.timed < self.calls
    }

    /// Returns the quantile `q` of `histogram` in ticks, if enough calls were timed to know it.
    pub(crate) fn quantile(self, histogram: &Histogram, q: f64) -> Option<u64> {
        histogram
            .quantile(q)
            .filter(|&ticks| !self.is_partial() || self.are_enough_timed(histogram, q, ticks))
    }

    fn are_enough_timed(self, histogram: &Histogram, q: f64, ticks: u64) -> bool {
        // The effective sample size: the number of equally weighted calls with the same precision.
        let completed = histogram.count() as f64;
        let effective = completed * completed / self.squared_weights.max(1.0);
        // The rank of a sample's quantile has a binomial distribution.
        let error = NORMAL_95 * (q * (1.0 - q) / effective).sqrt();
        let is_near = |q| {
            let other = histogram.quantile(q).map(bucket_of);
            other.is_some_and(|other| other.abs_diff(bucket_of(ticks)) <= 1)
        };
        (1.0 - q) * effective >= CALLS_BEYOND && is_near(q - error) && is_near(q + error)
    }
}
