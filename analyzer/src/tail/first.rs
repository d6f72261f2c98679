//! First calls that took much longer than those after them.
//!
//! A recording has no durations of single calls, but a page of a histogram is allocated when its first duration
//! arrives. So the first page shows how long the first call took, within a factor of four. If that page contains one
//! call, it is the first; if it is the last page, too, the first call is the longest, whose duration is exact.

use chase_recorder::histogram::{PAGE_BUCKETS, bucket_of};
use chase_recorder::reader::Histogram;

use super::Visit;

/// The minimum number of later calls.
pub(crate) const LEAST_CALLS: u64 = 5;
/// A first call is slow if it took this many times the median of all calls.
const SLOW: f64 = 10.0;
/// Shorter ones are not kept: no thread has enough contexts to make them matter.
pub(super) const LEAST_NS: f64 = 100_000.0;

/// A thread's first call of a context, and the duration of later ones.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FirstCall {
    pub(crate) group: u32,
    pub(crate) thread: u32,
    pub(crate) api: u32,
    pub(crate) context: u32,
    pub(crate) first_ns: f64,
    pub(crate) median_ns: f64,
    pub(crate) calls: u64,
}

impl FirstCall {
    pub(crate) fn excess_ns(&self) -> f64 {
        self.first_ns - self.median_ns
    }

    /// Returns the same without the hook's cost in nested calls, which is not in the tables of tails either: `pure`
    /// is the share of the time of such calls that was not the hook's.
    pub(super) fn net(self, pure: f64) -> Self {
        Self { first_ns: self.first_ns * pure, median_ns: self.median_ns * pure, ..self }
    }
}

pub(super) fn find(visit: &Visit<'_>, histogram: &Histogram) -> Option<FirstCall> {
    let longest = histogram.max();
    let scale = &visit.scale;
    let first_ns = scale.ns(longest as f64 - scale.inside);
    if histogram.count() <= LEAST_CALLS || first_ns < LEAST_NS {
        return None;
    }
    let median_ns = scale.ns((histogram.quantile(0.5)? as f64 - scale.inside).max(0.0));
    let page = bucket_of(longest) / PAGE_BUCKETS;
    let alone = super::count(histogram, |bucket| bucket / PAGE_BUCKETS == page) == 1;
    // An abandoned call may be the longest, and is in no page.
    if !alone
        || first_ns < SLOW * median_ns
        || visit.context.node().unwound > 0
        || visit.context.first_page() != Some(page)
    {
        return None;
    }
    Some(FirstCall {
        group: visit.group,
        thread: visit.thread,
        api: visit.api,
        context: visit.part.context,
        first_ns,
        median_ns,
        calls: visit.part.calls,
    })
}
