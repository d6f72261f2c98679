//! Adds up rows of system calls, and computes the figures of a sum.

use std::collections::BTreeMap;

use chase_recorder::syscalls::{BUCKETS, ERRNO_SHIFT, SyscallRow, bucket_end_ns};
use serde::Serialize;

use super::names::{error_name, returns_bytes};
use crate::clock::Ns;

/// Figures of a set of system calls. Times don't include the tracing's overhead.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SyscallMeasures {
    /// The number of calls that ended.
    pub calls: u64,
    /// The number of calls that failed.
    pub errors: u64,
    /// Failed calls by error, most first. If there are very many different errors, some are only in `errors`.
    pub by_error: Vec<ErrorCount>,
    /// Calls that were interrupted by a signal and restarted by the kernel.
    pub restarts: u64,
    /// Calls that never returned, because their thread ended; their time until then is included.
    pub unfinished: u64,
    /// Their total time.
    pub total_ns: Ns,
    /// The part of it off the CPU: waiting or preempted.
    pub off_cpu_ns: Ns,
    /// The rest of it.
    pub cpu_ns: Ns,
    /// The time of the longest.
    pub max_ns: Ns,
    /// Half of the calls took less than this: a bound, from a histogram of powers of two; the median is at least half
    /// of it.
    pub p50_below_ns: Option<Ns>,
    /// 99 % of the calls took less than this; a bound like `p50_below_ns`.
    pub p99_below_ns: Option<Ns>,
    /// Bytes transferred, if the calls return bytes.
    pub bytes: Option<u64>,
}

/// How often an error occurred.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct ErrorCount {
    /// Its number.
    pub errno: u16,
    /// Its name, if it is known.
    pub name: Option<&'static str>,
    /// How often.
    pub count: u64,
}

/// The sums behind a row.
#[derive(Clone, Debug, Default)]
pub(crate) struct SyscallSums {
    pub(crate) calls: u64,
    errors: u64,
    errnos: BTreeMap<u16, u64>,
    restarts: u64,
    unfinished: u64,
    total_ns: u64,
    off_cpu_ns: u64,
    max_ns: u64,
    bytes: Option<u64>,
    histogram: Buckets,
    /// The overhead within each duration of the histogram.
    inside_ns: u64,
}

/// Counts by bucket, of those that have any, in order: most system calls of a process are few, and take similar times.
#[derive(Clone, Debug, Default)]
struct Buckets(Vec<(u8, u64)>);

impl Buckets {
    fn add(&mut self, bucket: u8, count: u64) {
        if count == 0 {
            return;
        }
        match self.0.binary_search_by_key(&bucket, |&(bucket, _)| bucket) {
            Ok(at) => self.0[at].1 = self.0[at].1.saturating_add(count),
            Err(at) => {
                // (There may be millions of these: no room is kept that is not needed.)
                self.0.reserve_exact(1);
                self.0.insert(at, (bucket, count));
            }
        }
    }
}

impl SyscallSums {
    /// Adds a row of a file whose calls each contain `inside_ns` of overhead, as calibrated.
    pub(crate) fn add_row(&mut self, row: &SyscallRow, inside_ns: u64) {
        let (inside_ns, total_ns) = without_inside(row, inside_ns);
        let max_ns = row.max_ns.saturating_sub(inside_ns);
        let add = |sum: &mut u64, value: u64| *sum = sum.saturating_add(value);
        add(&mut self.calls, row.calls);
        add(&mut self.errors, row.errors);
        add(&mut self.restarts, row.restarts);
        add(&mut self.unfinished, row.unfinished);
        add(&mut self.total_ns, total_ns);
        add(&mut self.off_cpu_ns, row.off_cpu_ns);
        self.max_ns = self.max_ns.max(max_ns);
        self.inside_ns = self.inside_ns.max(inside_ns);
        if returns_bytes(row.number) {
            self.bytes = Some(self.bytes.unwrap_or(0).saturating_add(row.returned));
        }
        for packed in row.errnos {
            let (errno, count) = (packed >> ERRNO_SHIFT, packed & ((1 << ERRNO_SHIFT) - 1));
            if count > 0 {
                add(self.errnos.entry(errno as u16).or_default(), count);
            }
        }
        for (bucket, &count) in (0..).zip(&row.histogram) {
            self.histogram.add(bucket, count);
        }
    }

    /// Adds all of `other`.
    pub(crate) fn add(&mut self, other: &Self) {
        let add = |sum: &mut u64, value: u64| *sum = sum.saturating_add(value);
        add(&mut self.calls, other.calls);
        add(&mut self.errors, other.errors);
        add(&mut self.restarts, other.restarts);
        add(&mut self.unfinished, other.unfinished);
        add(&mut self.total_ns, other.total_ns);
        add(&mut self.off_cpu_ns, other.off_cpu_ns);
        self.max_ns = self.max_ns.max(other.max_ns);
        self.inside_ns = self.inside_ns.max(other.inside_ns);
        if let Some(bytes) = other.bytes {
            self.bytes = Some(self.bytes.unwrap_or(0).saturating_add(bytes));
        }
        for (&errno, &count) in &other.errnos {
            add(self.errnos.entry(errno).or_default(), count);
        }
        for &(bucket, count) in &other.histogram.0 {
            self.histogram.add(bucket, count);
        }
    }

    /// The time off the CPU; at most all of it.
    pub(crate) fn off_cpu_ns(&self) -> Ns {
        Ns(self.off_cpu_ns.min(self.total_ns))
    }

    /// The figures.
    pub(crate) fn measures(&self) -> SyscallMeasures {
        let mut by_error: Vec<ErrorCount> = self
            .errnos
            .iter()
            .map(|(&errno, &count)| ErrorCount { errno, name: error_name(errno), count })
            .collect();
        by_error.sort_by_key(|error| std::cmp::Reverse(error.count));
        let off_cpu_ns = self.off_cpu_ns();
        SyscallMeasures {
            calls: self.calls,
            errors: self.errors,
            by_error,
            restarts: self.restarts,
            unfinished: self.unfinished,
            total_ns: Ns(self.total_ns),
            off_cpu_ns,
            cpu_ns: Ns(self.total_ns - off_cpu_ns.0),
            max_ns: Ns(self.max_ns),
            p50_below_ns: self.bound(0.5),
            p99_below_ns: self.bound(0.99),
            bytes: self.bytes,
        }
    }

    /// Returns an upper bound of the quantile `q`: the end of the bucket of rank ⌈q · count⌉, but at most the longest
    /// call.
    fn bound(&self, q: f64) -> Option<Ns> {
        let counts = &self.histogram.0;
        let count = counts.iter().fold(0_u64, |sum, &(_, count)| sum.saturating_add(count));
        if count == 0 {
            return None;
        }
        let rank = (q * count as f64).ceil().max(1.0);
        let mut below = 0_u64;
        let reached = counts.iter().find(|&&(_, count)| {
            below = below.saturating_add(count);
            below as f64 >= rank
        });
        let bucket = reached.map_or(BUCKETS - 1, |&(bucket, _)| bucket.into());
        let end = bucket_end_ns(bucket).unwrap_or(u64::MAX);
        Some(Ns(end.saturating_sub(self.inside_ns).min(self.max_ns)))
    }
}

/// Returns the overhead within each call of a row of a file whose calls contain `inside_ns` of it, as calibrated, and how
/// long the calls took without it, ns. The overhead can't be more than the duration of the shortest call, and no call is
/// longer than all together: for slower calls it is the same, for very short ones it may be less.
pub(super) fn without_inside(row: &SyscallRow, inside_ns: u64) -> (u64, u64) {
    let inside_ns = inside_ns.min(shortest_below_ns(row));
    let total_ns = row.total_ns.saturating_sub(inside_ns.saturating_mul(row.calls));
    (inside_ns, total_ns.max(row.max_ns.saturating_sub(inside_ns)))
}

/// Returns a lower bound of the shortest call of a row: the start of its bucket, which is half of the bucket's end,
/// but at most the mean.
fn shortest_below_ns(row: &SyscallRow) -> u64 {
    let mean_ns = row.total_ns.checked_div(row.calls).unwrap_or(0);
    let first = row.histogram.iter().position(|&count| count > 0);
    let begins_ns = first.and_then(bucket_end_ns).map_or(mean_ns, |end| end / 2);
    begins_ns.min(mean_ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_in_order_whatever_the_order_of_adding() {
        let mut buckets = Buckets::default();
        for (bucket, count) in [(9, 2), (1, 1), (9, u64::MAX), (4, 0), (31, 5), (1, 6)] {
            buckets.add(bucket, count);
        }
        assert_eq!(buckets.0, [(1, 7), (9, u64::MAX), (31, 5)]);
    }
}
