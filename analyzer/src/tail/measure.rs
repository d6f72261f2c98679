//! Times of some of the calls in a histogram.

use std::collections::HashMap;

use chase_recorder::histogram::{bucket_middle, bucket_of, bucket_start};
use chase_recorder::reader::{Context, Histogram};

use super::ByContext;
use crate::evidence::Evidence;
use crate::rows::ThreadContext;
use crate::sums::Scale;

/// The durations of the calls of one context, or of all contexts of an API, in one group.
#[derive(Clone, Debug, Default)]
pub(crate) struct Durations {
    /// In ticks of the run's first clock, including the hook's inside cost.
    pub(crate) histogram: Histogram,
    /// Total time of the calls in the histogram, in the same ticks.
    ticks: f64,
    inside_ticks: f64,
    /// Measured time in ns, without the inside cost; and the same without the hook's cost in nested calls.
    measured_ns: f64,
    pure_ns: f64,
    ns_per_reference_tick: f64,
    /// Whether `ticks` includes the time of calls that are not in the histogram.
    has_others: bool,
    evidence: Evidence,
    pub(crate) calls: u64,
}

impl Durations {
    pub(crate) fn add(
        &mut self,
        context: &Context<'_>,
        histogram: &Histogram,
        part: &ThreadContext,
        scale: &Scale,
    ) {
        let node = context.node();
        let ratio = scale.ratio();
        scale.add(histogram, &mut self.histogram);
        self.ticks += node.total_ticks as f64 * ratio;
        let inside = scale.inside * histogram.count() as f64;
        self.inside_ticks += inside * ratio;
        self.measured_ns += scale.ns((node.total_ticks as f64 - inside).max(0.0));
        self.pure_ns += part.total_ns.as_f64();
        self.ns_per_reference_tick = scale.ns_per_reference_tick;
        self.has_others |= node.unwound > 0;
        let count = histogram.count();
        self.evidence.add(context.samples().map_or(
            Evidence { calls: count, timed: count, squared_weights: count as f64 },
            |samples| Evidence {
                calls: count,
                timed: samples.ended.into(),
                squared_weights: samples.pairs as f64 + samples.weight as f64,
            },
        ));
        self.calls = self.calls.saturating_add(part.calls);
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        self.histogram.merge(&other.histogram);
        self.ticks += other.ticks;
        self.inside_ticks += other.inside_ticks;
        self.measured_ns += other.measured_ns;
        self.pure_ns += other.pure_ns;
        self.ns_per_reference_tick = other.ns_per_reference_tick;
        self.has_others |= other.has_others;
        self.evidence.add(other.evidence);
        self.calls = self.calls.saturating_add(other.calls);
    }

    /// Returns the number of calls that ended. (The last sample of a thread also stands for calls that were not made any more.)
    pub(crate) fn completed(&self) -> u64 {
        self.histogram.count().min(self.calls)
    }

    /// Converts a duration in reference ticks to nanoseconds without the hook's cost.
    pub(crate) fn ns(&self, ticks: f64) -> f64 {
        let count = self.histogram.count().max(1) as f64;
        (ticks - self.inside_ticks / count).max(0.0) * self.pure() * self.ns_per_reference_tick
    }

    /// Returns the share of the measured time that was not the hook's in nested calls.
    pub(crate) fn pure(&self) -> f64 {
        pure_share(self.pure_ns, self.measured_ns)
    }

    /// Returns the quantile `q`, if it is known.
    pub(crate) fn quantile_ns(&self, q: f64) -> Option<f64> {
        self.evidence.quantile(&self.histogram, q).map(|ticks| self.ns(ticks as f64))
    }

    /// Whether only some of the calls were timed.
    pub(crate) fn is_partial(&self) -> bool {
        self.evidence.is_partial()
    }

    /// Returns the bucket of a quantile.
    pub(crate) fn bucket(&self, q: f64) -> usize {
        self.histogram.quantile(q).map_or(0, bucket_of)
    }

    /// Returns the number of calls in buckets above `bucket`, and their total time in ns.
    pub(crate) fn above(&self, bucket: usize) -> (u64, f64) {
        let exact = (!self.has_others).then_some(self.ticks);
        let (count, ticks) = time_above(&self.histogram, bucket, exact);
        let inside = self.inside_ticks / self.histogram.count().max(1) as f64 * count as f64;
        (count, (ticks - inside).max(0.0) * self.pure() * self.ns_per_reference_tick)
    }

    pub(crate) fn ns_per_reference_tick(&self) -> f64 {
        self.ns_per_reference_tick
    }

    /// Returns the total time in ns.
    pub(crate) fn all_ns(&self) -> f64 {
        self.measured_ns * self.pure()
    }
}

/// Returns [`Durations::pure`] of each API in each group, for other figures about single calls.
pub(super) fn pure_by_api(
    durations: &ByContext,
    api_of: impl Fn(usize) -> u32,
) -> HashMap<(u32, u32), f64> {
    let mut times: HashMap<(u32, u32), (f64, f64)> = HashMap::new();
    for (&(group, context), of_context) in durations {
        let (pure_ns, measured_ns) = times.entry((group, api_of(context as usize))).or_default();
        *pure_ns += of_context.pure_ns;
        *measured_ns += of_context.measured_ns;
    }
    times.into_iter().map(|(key, (pure, measured))| (key, pure_share(pure, measured))).collect()
}

fn pure_share(pure_ns: f64, measured_ns: f64) -> f64 {
    if measured_ns > 0.0 { (pure_ns / measured_ns).min(1.0) } else { 1.0 }
}

/// Returns how many durations are in buckets above `bucket`, and their sum in ticks.
///
/// From the buckets alone, the sum is known within 6.25 %. But the sum of all durations is known exactly, and so is
/// the longest: the difference of that sum and the one by the buckets' middles is distributed over both parts in
/// proportion to the widths of their buckets, and the result is limited to what the bounds of the buckets allow.
pub(crate) fn time_above(histogram: &Histogram, bucket: usize, exact: Option<f64>) -> (u64, f64) {
    let max = histogram.max() as f64;
    let mut count = 0_u64;
    // Minimum, maximum and likely sum of the durations up to `bucket`, and above it.
    let mut parts = [[0.0_f64; 3]; 2];
    for (at, calls) in histogram.buckets() {
        let is_above = at > bucket;
        count = if is_above { count.saturating_add(calls) } else { count };
        let calls = calls as f64;
        let start = (bucket_start(at) as f64).min(max);
        let end = (bucket_start(at + 1) as f64).min(max);
        let middle = (bucket_middle(at) as f64).min(max);
        let part = &mut parts[usize::from(is_above)];
        // One call of the last bucket took the longest time.
        let (inexact, known) = if bucket_of(histogram.max()) == at {
            ((calls - 1.0).max(0.0), max)
        } else {
            (calls, 0.0)
        };
        for (sum, each) in part.iter_mut().zip([start, end, middle]) {
            *sum += inexact * each + known;
        }
    }
    let [[least_below, most_below, below], [least, most, likely]] = parts;
    let Some(exact) = exact else { return (count, likely) };
    let (width, width_below) = (most - least, most_below - least_below);
    let missed = exact - below - likely;
    let share = if width > 0.0 { width / (width + width_below) } else { 0.0 };
    let low = least.max(exact - most_below);
    let high = most.min(exact - least_below);
    // Contradictory data have no such range.
    let found = likely + missed * share;
    (count, if low <= high { found.clamp(low, high) } else { likely })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_slow_calls_is_better_than_a_bucket() {
        for (fast, slow, slow_calls) in
            [(1_000_u64, 100_000_u64, 1), (1_000, 115_000, 20), (1_090, 99_000, 3), (70, 9_999, 7)]
        {
            let mut histogram = Histogram::default();
            histogram.record(fast, 10_000 - slow_calls);
            // None of them quite the same.
            let mut truth = 0.0;
            for call in 0..slow_calls {
                let ticks = slow + call * slow / 50;
                histogram.record(ticks, 1);
                truth += ticks as f64;
            }
            let exact = (fast * (10_000 - slow_calls)) as f64 + truth;
            let bucket = bucket_of(histogram.quantile(0.5).unwrap_or(0));
            let (count, found) = time_above(&histogram, bucket, Some(exact));
            assert_eq!(count, slow_calls);
            assert!((found / truth - 1.0).abs() < 0.05, "{found} of {truth}");
        }
    }

    #[test]
    fn without_the_sum_the_middles_of_buckets_count() {
        let mut histogram = Histogram::default();
        histogram.record(100, 5);
        histogram.record(4_000, 2);
        let (count, ticks) = time_above(&histogram, bucket_of(100), None);
        assert_eq!(
            (count, ticks),
            (2, 4_000.0 + bucket_middle(bucket_of(4_000)).min(4_000) as f64)
        );
    }
}
