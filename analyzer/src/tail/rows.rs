//! The table of tails.

use std::collections::{BTreeMap, HashMap};

use chase_recorder::histogram::bucket_of;
use chase_recorder::reader::Histogram;
use serde::Serialize;

use super::measure::Durations;
use super::{ByContext, Visit, above};
use crate::analysis::Analysis;
use crate::clock::Ns;
use crate::syscalls::{OfContext, SyscallRow};

/// The maximum number of threads and of system calls in a row.
const HOLDERS: usize = 5;
/// The hook's cost is known to a few nanoseconds, so shorter durations give no useful ratio.
const LEAST_NS: f64 = 10.0;

/// The durations of an API's calls in a group: those of single calls, including the library calls made inside
/// (service time).
#[derive(Clone, Debug, Serialize)]
pub struct TailRow {
    /// The group, by number in [`Groups::rows`](crate::Groups::rows).
    pub group: u32,
    /// The API, by number in [`Analysis::apis`](crate::Analysis::apis).
    pub api: u32,
    /// The number of completed calls.
    pub calls: u64,
    /// Their total time; nested calls count each.
    pub time_ns: Ns,
    /// Whether only some of the calls were timed, each for a block of calls: then numbers of calls, and what is above
    /// p99, are estimates.
    pub sampled: bool,
    /// Median, within 6.25 %; `None` if too few calls were timed to know it.
    pub p50_ns: Option<Ns>,
    /// 90th percentile.
    pub p90_ns: Option<Ns>,
    /// 99th percentile.
    pub p99_ns: Option<Ns>,
    /// 99.9th percentile.
    pub p999_ns: Option<Ns>,
    /// 99.99th percentile.
    pub p9999_ns: Option<Ns>,
    /// The longest timed call.
    pub max_ns: Ns,
    /// p99.9 / p50; `None` if one is unknown, or if the median is so short that the hook's cost distorts it.
    pub tail_ratio: Option<f64>,
    /// The number of calls above p99 (above its bucket); 0 if that is unknown.
    pub calls_above_p99: u64,
    /// Time of the calls above p99, as a share of `time_ns`; `None` if p99 is unknown, or so short that the hook's
    /// cost distorts it.
    pub above_p99: Option<f64>,
    /// The number of threads that made calls above p99.
    pub threads_above_p99: usize,
    /// The threads that made most of them.
    pub threads: Vec<TailThread>,
    /// The contexts of the API by themselves; longest time first.
    pub contexts: Vec<TailContext>,
    /// System calls that the API itself makes in these contexts, by any caller: those with the longest single call,
    /// in which a slow call may have been. Empty if none were recorded.
    pub syscalls: Vec<TailSyscall>,
}

/// A system call in which a slow call may have been.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TailSyscall {
    /// Its name.
    pub syscall: String,
    /// How often it was made.
    pub calls: u64,
    /// Their total time.
    pub total_ns: Ns,
    /// The time of the longest.
    pub max_ns: Ns,
}

/// A thread that makes slow calls.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct TailThread {
    /// The thread, by number in [`Analysis::threads`](crate::Analysis::threads).
    pub thread: u32,
    /// The number of its calls above the group's p99.
    pub calls_above_p99: u64,
}

/// The durations of an API's calls in one context.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct TailContext {
    /// The context, by number in [`Analysis::contexts`](crate::Analysis::contexts).
    pub context: u32,
    /// Calls completed.
    pub calls: u64,
    /// The number of calls above p99 of all contexts.
    pub calls_above_p99: u64,
    /// Median of this context alone, if known.
    pub p50_ns: Option<Ns>,
    /// 99th percentile, likewise.
    pub p99_ns: Option<Ns>,
    /// 99.9th percentile, likewise.
    pub p999_ns: Option<Ns>,
    /// The longest.
    pub max_ns: Ns,
}

/// Rows under construction.
pub(super) struct Holders {
    by_api: HashMap<(u32, u32), ApiTail>,
}

/// The number of calls of a thread above p99 of its group, in one context.
pub(super) struct Count {
    /// Group and API.
    key: (u32, u32),
    thread: u32,
    calls: u64,
}

struct ApiTail {
    durations: Durations,
    /// Bucket of p99 in reference ticks, and p99 in nanoseconds including the hook's cost; beyond all durations if
    /// p99 is unknown.
    p99: usize,
    threshold_ns: f64,
    contexts: Vec<TailContext>,
    by_thread: BTreeMap<u32, u64>,
}

impl Holders {
    pub(super) fn new(analysis: &Analysis, by_context: &ByContext) -> Self {
        let mut by_api: HashMap<(u32, u32), ApiTail> = HashMap::new();
        for (&(group, context), durations) in by_context {
            let api = analysis.contexts[context as usize].api;
            let tail = by_api.entry((group, api)).or_insert_with(|| ApiTail {
                durations: Durations::default(),
                p99: 0,
                threshold_ns: 0.0,
                contexts: Vec::new(),
                by_thread: BTreeMap::new(),
            });
            tail.durations.merge(durations);
        }
        for tail in by_api.values_mut() {
            tail.p99 = usize::MAX;
            tail.threshold_ns = f64::INFINITY;
            if tail.durations.quantile_ns(0.99).is_none() {
                continue;
            }
            tail.p99 = tail.durations.bucket(0.99);
            let end = chase_recorder::histogram::bucket_start(tail.p99 + 1) as f64;
            tail.threshold_ns = end * tail.durations.ns_per_reference_tick();
        }
        for (&(group, context), durations) in by_context {
            let api = analysis.contexts[context as usize].api;
            let Some(tail) = by_api.get_mut(&(group, api)) else { continue };
            if durations.histogram.count() == 0 {
                continue;
            }
            let quantile = |q| durations.quantile_ns(q).map(Ns::from_f64);
            tail.contexts.push(TailContext {
                context,
                calls: durations.completed(),
                calls_above_p99: above(&durations.histogram, tail.p99).min(durations.completed()),
                p50_ns: quantile(0.5),
                p99_ns: quantile(0.99),
                p999_ns: quantile(0.999),
                max_ns: Ns::from_f64(durations.ns(durations.histogram.max() as f64)),
            });
        }
        Self { by_api }
    }

    /// Threads whose longest call, including the hook's cost, is not longer than this hold no tail.
    pub(super) fn threshold_ns(&self, visit: &Visit<'_>) -> f64 {
        let tail = self.by_api.get(&(visit.group, visit.api));
        tail.map_or(f64::INFINITY, |tail| tail.threshold_ns)
    }

    /// Returns the number of calls above p99 in a thread's context, if any.
    pub(super) fn count(&self, visit: &Visit<'_>, histogram: &Histogram) -> Option<Count> {
        let tail = self.by_api.get(&(visit.group, visit.api))?;
        let ticks = tail.threshold_ns / visit.scale.ns_per_tick;
        let calls = above(histogram, bucket_of((ticks as u64).saturating_sub(1)));
        let key = (visit.group, visit.api);
        (calls > 0).then_some(Count { key, thread: visit.thread, calls })
    }

    pub(super) fn add(&mut self, count: Count) {
        if let Some(tail) = self.by_api.get_mut(&count.key) {
            let calls = tail.by_thread.entry(count.thread).or_default();
            *calls = calls.saturating_add(count.calls);
        }
    }

    pub(super) fn rows(self, analysis: &Analysis) -> Vec<TailRow> {
        let syscalls = BySyscall::new(analysis);
        let mut rows: Vec<(f64, TailRow)> = self
            .by_api
            .into_iter()
            .filter(|(_, tail)| tail.durations.histogram.count() > 0)
            .map(|((group, api), tail)| {
                let longest = analysis.apis[api as usize].measures.max_ns;
                let (above_ns, mut row) = row(group, api, tail, &syscalls);
                row.limit(longest.unwrap_or(row.max_ns));
                (above_ns, row)
            })
            .collect();
        let key = |row: &TailRow| (row.group, row.api);
        rows.sort_by(|a, b| b.0.total_cmp(&a.0).then(key(&a.1).cmp(&key(&b.1))));
        rows.into_iter().map(|(_, row)| row).collect()
    }
}

impl TailRow {
    /// Limits durations to the longest of the function: the hook's cost in nested calls, which was subtracted from them, is a mean
    /// over other calls there than here.
    fn limit(&mut self, longest: Ns) {
        let limit = |ns: &mut Ns| *ns = (*ns).min(longest);
        let Self { p50_ns, p90_ns, p99_ns, p999_ns, p9999_ns, max_ns, contexts, .. } = self;
        [p50_ns, p90_ns, p99_ns, p999_ns, p9999_ns].into_iter().flatten().for_each(limit);
        limit(max_ns);
        for context in contexts {
            let TailContext { p50_ns, p99_ns, p999_ns, max_ns, .. } = context;
            [p50_ns, p99_ns, p999_ns].into_iter().flatten().for_each(limit);
            limit(max_ns);
        }
    }
}

/// System calls by the context in which they were made.
struct BySyscall<'a>(HashMap<u32, Vec<&'a SyscallRow<OfContext>>>);

impl<'a> BySyscall<'a> {
    fn new(analysis: &'a Analysis) -> Self {
        let mut by_context: HashMap<u32, Vec<_>> = HashMap::new();
        for row in &analysis.syscalls.by_context {
            if let Some(context) = row.of.context {
                by_context.entry(context).or_default().push(row);
            }
        }
        Self(by_context)
    }

    /// Returns those made in any of `contexts`, the one with the longest single call first.
    fn made_in(&self, contexts: &[TailContext]) -> Vec<TailSyscall> {
        let mut by_name: BTreeMap<&str, TailSyscall> = BTreeMap::new();
        let rows = contexts.iter().filter_map(|context| self.0.get(&context.context)).flatten();
        for row in rows {
            let sum = by_name.entry(&row.syscall).or_insert_with(|| TailSyscall {
                syscall: row.syscall.clone().into_owned(),
                calls: 0,
                total_ns: Ns(0),
                max_ns: Ns(0),
            });
            sum.calls = sum.calls.saturating_add(row.measures.calls);
            sum.total_ns = Ns(sum.total_ns.0.saturating_add(row.measures.total_ns.0));
            sum.max_ns = sum.max_ns.max(row.measures.max_ns);
        }
        let mut rows: Vec<_> = by_name.into_values().collect();
        rows.sort_by(|a, b| b.max_ns.cmp(&a.max_ns).then_with(|| a.syscall.cmp(&b.syscall)));
        rows.truncate(HOLDERS);
        rows
    }
}

/// Makes the row; also returns the time of the calls above p99.
fn row(group: u32, api: u32, tail: ApiTail, syscalls: &BySyscall<'_>) -> (f64, TailRow) {
    let ApiTail { durations, p99, mut contexts, by_thread, .. } = tail;
    let quantile = |q| durations.quantile_ns(q).map(Ns::from_f64);
    let all_ns = durations.all_ns();
    contexts.sort_by_key(|context| {
        (std::cmp::Reverse((context.calls_above_p99, context.calls)), context.context)
    });
    let threads_above_p99 = by_thread.len();
    let mut threads: Vec<TailThread> = by_thread
        .into_iter()
        .map(|(thread, calls_above_p99)| TailThread { thread, calls_above_p99 })
        .collect();
    threads.sort_by_key(|holder| (std::cmp::Reverse(holder.calls_above_p99), holder.thread));
    threads.truncate(HOLDERS);
    let (p50_ns, p99_ns, p999_ns) = (quantile(0.5), quantile(0.99), quantile(0.999));
    let (calls_above_p99, above_ns) = durations.above(p99);
    let calls_above_p99 = calls_above_p99.min(durations.completed());
    let is_told = p99_ns.is_some_and(|p99| p99.as_f64() >= LEAST_NS) && all_ns > 0.0;
    let above_ns = if is_told { above_ns } else { 0.0 };
    let row = TailRow {
        group,
        api,
        calls: durations.completed(),
        time_ns: Ns::from_f64(all_ns),
        sampled: durations.is_partial(),
        p50_ns,
        p90_ns: quantile(0.9),
        p99_ns,
        p999_ns,
        p9999_ns: quantile(0.9999),
        max_ns: Ns::from_f64(durations.ns(durations.histogram.max() as f64)),
        tail_ratio: ratio(p999_ns, p50_ns),
        calls_above_p99,
        above_p99: is_told.then(|| (above_ns / all_ns).min(1.0)),
        threads_above_p99,
        threads,
        syscalls: syscalls.made_in(&contexts),
        contexts,
    };
    (above_ns, row)
}

/// Returns p99.9 / p50, if that is meaningful.
fn ratio(p999_ns: Option<Ns>, p50_ns: Option<Ns>) -> Option<f64> {
    let median = p50_ns?.as_f64();
    (median >= LEAST_NS).then_some(p999_ns?.as_f64() / median)
}
