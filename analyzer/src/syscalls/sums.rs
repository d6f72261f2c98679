//! Adding up rows of syscalls, and the figures of a sum.

use std::collections::BTreeMap;

use chase_recorder::syscalls::{BUCKETS, ERRNO_SHIFT, SyscallRow, bucket_end_ns};
use serde::Serialize;

use super::names::{error_name, returns_bytes};
use crate::clock::Ns;

/// Figures of a set of system calls. Times are free of the tracing's own cost.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SyscallMeasures {
    /// Calls that ended.
    pub calls: u64,
    /// Those that failed.
    pub errors: u64,
    /// The failed ones by error, most first. Of very many different errors some are only in
    /// `errors`.
    pub by_error: Vec<ErrorCount>,
    /// Calls that a signal ended and that the kernel makes again.
    pub restarts: u64,
    /// Calls that never returned, because their thread ended; their time until then is included.
    pub unfinished: u64,
    /// Their time.
    pub total_ns: Ns,
    /// The part of it off the CPU: waiting or preempted.
    pub off_cpu_ns: Ns,
    /// The rest of it.
    pub cpu_ns: Ns,
    /// The longest.
    pub max_ns: Ns,
    /// Half of the calls took less: a bound, from a histogram of powers of two; the median is at
    /// least half of it.
    pub p50_below_ns: Option<Ns>,
    /// 99 % of the calls took less; as `p50_below_ns`.
    pub p99_below_ns: Option<Ns>,
    /// Bytes moved, where the calls return bytes.
    pub bytes: Option<u64>,
}

/// How often an error came.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct ErrorCount {
    /// Its number.
    pub errno: u16,
    /// Its name, if it is known.
    pub name: Option<&'static str>,
    /// How often.
    pub count: u64,
}

/// What a row is the sum of.
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
    histogram: [u64; BUCKETS],
    /// Cost within the durations of the histogram, per call.
    inside_ns: u64,
}

impl SyscallSums {
    /// Adds a row of a file whose calls each contain `inside_ns` of the tracing: as it was measured beforehand. That can't be
    /// more than what the shortest of them took, and no call is longer than all together.
    pub(crate) fn add_row(&mut self, row: &SyscallRow, inside_ns: u64) {
        let inside_ns = inside_ns.min(shortest_below_ns(row));
        let max_ns = row.max_ns.saturating_sub(inside_ns);
        let total_ns = row.total_ns.saturating_sub(inside_ns.saturating_mul(row.calls));
        let add = |sum: &mut u64, value: u64| *sum = sum.saturating_add(value);
        add(&mut self.calls, row.calls);
        add(&mut self.errors, row.errors);
        add(&mut self.restarts, row.restarts);
        add(&mut self.unfinished, row.unfinished);
        // Of calls that were slower, the cost is the same; of very short ones it may be less.
        add(&mut self.total_ns, total_ns.max(max_ns));
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
        for (sum, &count) in self.histogram.iter_mut().zip(&row.histogram) {
            add(sum, count);
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
        for (sum, &count) in self.histogram.iter_mut().zip(&other.histogram) {
            add(sum, count);
        }
    }

    /// The figures.
    pub(crate) fn measures(&self) -> SyscallMeasures {
        let mut by_error: Vec<ErrorCount> = self
            .errnos
            .iter()
            .map(|(&errno, &count)| ErrorCount { errno, name: error_name(errno), count })
            .collect();
        by_error.sort_by_key(|error| std::cmp::Reverse(error.count));
        let off_cpu_ns = self.off_cpu_ns.min(self.total_ns);
        SyscallMeasures {
            calls: self.calls,
            errors: self.errors,
            by_error,
            restarts: self.restarts,
            unfinished: self.unfinished,
            total_ns: Ns(self.total_ns),
            off_cpu_ns: Ns(off_cpu_ns),
            cpu_ns: Ns(self.total_ns - off_cpu_ns),
            max_ns: Ns(self.max_ns),
            p50_below_ns: self.bound(0.5),
            p99_below_ns: self.bound(0.99),
            bytes: self.bytes,
        }
    }

    /// What a fraction `q` of the calls does not exceed: the end of the bucket of rank ⌈q · count⌉,
    /// but no more than the longest call.
    fn bound(&self, q: f64) -> Option<Ns> {
        let count = self.histogram.iter().fold(0_u64, |sum, &count| sum.saturating_add(count));
        if count == 0 {
            return None;
        }
        let rank = (q * count as f64).ceil().max(1.0);
        let mut below = 0_u64;
        let bucket = self.histogram.iter().position(|&count| {
            below = below.saturating_add(count);
            below as f64 >= rank
        });
        let end = bucket_end_ns(bucket.unwrap_or(BUCKETS - 1)).unwrap_or(u64::MAX);
        Some(Ns(end.saturating_sub(self.inside_ns).min(self.max_ns)))
    }
}

/// What the shortest call of a row took less than: half of the end of its bucket, for that is where the bucket begins, and
/// never more than the mean.
fn shortest_below_ns(row: &SyscallRow) -> u64 {
    let mean_ns = row.total_ns.checked_div(row.calls).unwrap_or(0);
    let first = row.histogram.iter().position(|&count| count > 0);
    let begins_ns = first.and_then(bucket_end_ns).map_or(mean_ns, |end| end / 2);
    begins_ns.min(mean_ns)
}
