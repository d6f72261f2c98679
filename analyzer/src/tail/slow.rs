//! Rare calls that took much longer than most.

use std::collections::HashMap;

use chase_recorder::histogram::bucket_of;
use chase_recorder::reader::Histogram;

use super::first::LEAST_NS;
use super::measure::{Durations, time_above};
use super::{ByContext, Visit, above};

/// A call is slow if it took this many times the group's median.
const SLOW: f64 = 10.0;
/// Slow calls are rare if they are at most this share of a thread's calls, or one of ten: a thread with many slow
/// calls is a slow thread.
const RARE: f64 = 0.02;
const LEAST_CALLS: u64 = 10;

/// Rare slow calls of a context by one thread.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SlowCalls {
    pub(crate) group: u32,
    pub(crate) thread: u32,
    pub(crate) api: u32,
    pub(crate) context: u32,
    pub(crate) slow: u64,
    pub(crate) slow_ns: f64,
    pub(crate) max_ns: f64,
    /// The median of the group's calls.
    pub(crate) median_ns: f64,
}

impl SlowCalls {
    pub(crate) fn excess_ns(&self) -> f64 {
        self.slow_ns - self.slow as f64 * self.median_ns
    }
}

/// The thresholds of slow calls, for each context of each group.
pub(super) struct Thresholds(HashMap<(u32, u32), Threshold>);

/// The threshold of slow calls in a context of a group.
pub(super) struct Threshold {
    /// Calls that take longer are slow.
    pub(super) threshold_ns: f64,
    median_ns: Option<f64>,
    pure: f64,
}

impl Thresholds {
    /// `pure` is that of an API in a group, from [`pure_by_api`](super::measure::pure_by_api); `api_of` is a
    /// context's API.
    pub(super) fn new(
        durations: &ByContext,
        pure: &HashMap<(u32, u32), f64>,
        api_of: impl Fn(usize) -> u32,
    ) -> Self {
        let threshold = |(&key, of_group): (&(u32, u32), &Durations)| {
            let pure = pure.get(&(key.0, api_of(key.1 as usize))).copied().unwrap_or(1.0);
            let own_pure = of_group.pure().max(f64::MIN_POSITIVE);
            let median_ns = of_group.quantile_ns(0.5).map(|ns| ns / own_pure * pure);
            let threshold_ns = median_ns.map_or(f64::INFINITY, |median| SLOW * median);
            (key, Threshold { threshold_ns, median_ns, pure })
        };
        Self(durations.iter().map(threshold).collect())
    }

    pub(super) fn of_visit(&self, visit: &Visit<'_>) -> Option<&Threshold> {
        self.0.get(&(visit.group, visit.part.context))
    }
}

pub(super) fn find(
    visit: &Visit<'_>,
    histogram: &Histogram,
    of_group: &Threshold,
) -> Option<SlowCalls> {
    let (node, scale) = (visit.context.node(), &visit.scale);
    let median_ns = of_group.median_ns?;
    let pure = of_group.pure.max(f64::MIN_POSITIVE);
    let ticks = SLOW * median_ns / pure / scale.ns_per_tick + scale.inside;
    let bucket = bucket_of(ticks as u64);
    let slow = above(histogram, bucket);
    let most = ((RARE * histogram.count() as f64) as u64).max(1);
    if slow == 0 || slow > most || histogram.count() < LEAST_CALLS {
        return None;
    }
    let exact = (node.unwound == 0).then_some(node.total_ticks as f64);
    let (_, slow_ticks) = time_above(histogram, bucket, exact);
    let ns = |ticks: f64, calls: u64| {
        scale.ns((ticks - scale.inside * calls as f64).max(0.0)) * of_group.pure
    };
    let found = SlowCalls {
        group: visit.group,
        thread: visit.thread,
        api: visit.api,
        context: visit.part.context,
        slow,
        slow_ns: ns(slow_ticks, slow),
        max_ns: ns(histogram.max() as f64, 1),
        median_ns,
    };
    (found.excess_ns() >= LEAST_NS).then_some(found)
}
