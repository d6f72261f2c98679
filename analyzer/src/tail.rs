//! Tails: the slowest calls of each API in each thread group, and who makes them.

mod first;
mod measure;
mod rows;
mod slow;

use std::collections::{BTreeMap, HashMap};

use chase_recorder::reader::{Context, Histogram, Thread};

use crate::analysis::Analysis;
use crate::costs::PARTS;
use crate::groups::Groups;
use crate::image::Image;
use crate::rows::{ContextRow, ThreadContext, ThreadRow};
use crate::sums::Scale;

pub(crate) use first::FirstCall;
pub(crate) use measure::Durations;
pub use rows::{TailContext, TailRow, TailSyscall, TailThread};
pub(crate) use slow::SlowCalls;

/// The durations of calls, by thread group.
#[derive(Clone, Debug)]
pub struct Tails {
    /// APIs of groups: the one whose calls above p99 took longest together first.
    pub rows: Vec<TailRow>,
    /// First calls that took much longer than the others, by thread.
    pub(crate) first_calls: Vec<FirstCall>,
    /// Calls that took much longer than most, by thread.
    pub(crate) slow_calls: Vec<SlowCalls>,
}

/// Durations of the calls of a context in a group. In order, so that sums are the same in each run.
pub(crate) type ByContext = BTreeMap<(u32, u32), Durations>;

impl Tails {
    /// The tails of `groups`. `images` and `analysis` are what those were made of. Reads all
    /// histograms, in time linear in their number, on all processors.
    #[must_use]
    pub fn new(images: &[Image], analysis: &Analysis, groups: &Groups) -> Self {
        let threads = recorded_threads(images, analysis, groups);
        let parts = in_parallel(&threads, |threads| {
            let mut durations = ByContext::new();
            let mut first_calls = Vec::new();
            each_context(threads, |visit| {
                let key = (visit.group, visit.part.context);
                let histogram = visit.context.histogram();
                let of_group = durations.entry(key).or_default();
                of_group.add(&visit.context, &histogram, visit.part, &visit.scale);
                first_calls.extend(first::find(&visit, &histogram));
            });
            (durations, first_calls)
        });
        let mut durations = ByContext::new();
        let mut first_calls = Vec::new();
        for (of_part, mut firsts) in parts {
            first_calls.append(&mut firsts);
            for (key, more) in of_part {
                durations.entry(key).or_default().merge(&more);
            }
        }
        let mut holders = rows::Holders::new(analysis, &durations);
        let parts = in_parallel(&threads, |threads| {
            let (mut counts, mut slow_calls) = (Vec::new(), Vec::new());
            each_context(threads, |visit| {
                let key = (visit.group, visit.part.context);
                let Some(of_group) = durations.get(&key) else { return };
                let longest = visit.scale.ns(visit.context.node().max_ticks as f64);
                let wanted = holders.threshold_ns(&visit).min(slow::threshold_ns(of_group));
                if longest > wanted {
                    let histogram = visit.context.histogram();
                    counts.extend(holders.count(&visit, &histogram));
                    slow_calls.extend(slow::find(&visit, &histogram, of_group));
                }
            });
            (counts, slow_calls)
        });
        let mut slow_calls = Vec::new();
        for (counts, mut slow) in parts {
            counts.into_iter().for_each(|count| holders.add(count));
            slow_calls.append(&mut slow);
        }
        Self { rows: holders.rows(analysis), first_calls, slow_calls }
    }
}

/// A thread, its row and its group.
struct RecordedThread<'r> {
    thread: Thread<'r>,
    /// By number in the analysis.
    number: u32,
    row: &'r ThreadRow,
    group: u32,
    api_of: &'r [ContextRow],
    scale: Scale,
}

fn recorded_threads<'r>(
    images: &'r [Image],
    analysis: &'r Analysis,
    groups: &Groups,
) -> Vec<RecordedThread<'r>> {
    let ns_per_reference_tick = images.first().map_or(1.0, |image| image.clock.ns_per_tick());
    let mut rows: HashMap<(usize, u32), (u32, &'r ThreadRow)> = HashMap::new();
    for (number, row) in (0..).zip(&analysis.threads) {
        rows.insert((row.process, row.thread), (number, row));
    }
    let mut threads = Vec::with_capacity(rows.len());
    for (process, image) in images.iter().enumerate() {
        let scale = Scale {
            ns_per_tick: image.clock.ns_per_tick(),
            ns_per_reference_tick,
            inside: image.recording.header().cost_inside as f64 / PARTS,
        };
        for thread in image.recording.threads() {
            if let Some(&(number, row)) = rows.get(&(process, thread.record().index)) {
                let group = groups.of_thread[number as usize];
                let api_of = &*analysis.contexts;
                threads.push(RecordedThread { thread, number, row, group, api_of, scale });
            }
        }
    }
    threads
}

/// What `work` makes of parts of `threads`, in order; each part on a processor of its own.
fn in_parallel<'r, T: Send>(
    threads: &[RecordedThread<'r>],
    work: impl Fn(&[RecordedThread<'r>]) -> T + Sync,
) -> Vec<T> {
    /// A thread of our own is not worth it for fewer.
    const LEAST: usize = 64;
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let len = threads.len().div_ceil(processors).max(LEAST);
    if threads.len() <= len {
        return vec![work(threads)];
    }
    std::thread::scope(|scope| {
        let parts = threads.chunks(len).map(|part| scope.spawn(|| work(part)));
        let parts: Vec<_> = parts.collect();
        let join = |part: std::thread::ScopedJoinHandle<'_, T>| match part.join() {
            Ok(made) => made,
            Err(panic) => std::panic::resume_unwind(panic),
        };
        parts.into_iter().map(join).collect()
    })
}

/// A context of a thread, and all that it is part of.
pub(crate) struct Visit<'r> {
    pub(crate) group: u32,
    /// By number in the analysis.
    pub(crate) thread: u32,
    pub(crate) api: u32,
    pub(crate) context: Context<'r>,
    pub(crate) part: &'r ThreadContext,
    pub(crate) scale: Scale,
}

fn each_context<'r>(threads: &[RecordedThread<'r>], mut visit: impl FnMut(Visit<'r>)) {
    for recorded in threads {
        let &RecordedThread { thread, number, row, group, api_of, scale } = recorded;
        for (context, part) in thread.contexts().zip(&row.contexts) {
            if !context.is_inherited() {
                let api = api_of[part.context as usize].api;
                visit(Visit { group, thread: number, api, context, part, scale });
            }
        }
    }
}

impl Scale {
    /// Ticks of the image as nanoseconds.
    pub(crate) fn ns(&self, ticks: f64) -> f64 {
        ticks * self.ns_per_tick
    }
}

/// How many of the durations are longer than those of `bucket`.
fn above(histogram: &Histogram, bucket: usize) -> u64 {
    count(histogram, |at| at > bucket)
}

/// How many of the durations are in the buckets that are `wanted`; saturates, as counts of a damaged
/// recording may be any.
fn count(histogram: &Histogram, wanted: impl Fn(usize) -> bool) -> u64 {
    let counts = histogram.buckets().filter(|&(at, _)| wanted(at));
    counts.fold(0, |sum: u64, (_, count)| sum.saturating_add(count))
}
