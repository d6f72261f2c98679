//! Tails: the slowest calls of each API in each thread group, and which threads make them.

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
use crate::workers::{PART, Workers, parts};

pub(crate) use first::{FirstCall, LEAST_CALLS};
pub(crate) use measure::Durations;
pub use rows::{TailContext, TailRow, TailSyscall, TailThread};
pub(crate) use slow::SlowCalls;

/// The durations of calls, by thread group.
#[derive(Clone, Debug)]
pub struct Tails {
    /// APIs of groups, sorted by the total time of calls above p99, longest first.
    pub rows: Vec<TailRow>,
    /// First calls that took much longer than the others, by thread.
    pub(crate) first_calls: Vec<FirstCall>,
    /// Calls that took much longer than most, by thread.
    pub(crate) slow_calls: Vec<SlowCalls>,
}

/// Durations of the calls of a context in a group. Ordered, so that sums are the same in each run.
pub(crate) type ByContext = BTreeMap<(u32, u32), Durations>;

impl Tails {
    /// Computes the tails of `groups`, which were made of `images` and `analysis`. Reads all histograms, in time
    /// linear in their number, on all processors.
    #[must_use]
    pub fn new(images: &[Image], analysis: &Analysis, groups: &Groups) -> Self {
        Self::new_with(images, analysis, groups, Workers::all())
    }

    /// Like [`Tails::new`], with a given number of workers.
    #[must_use]
    pub fn new_with(
        images: &[Image],
        analysis: &Analysis,
        groups: &Groups,
        workers: Workers,
    ) -> Self {
        let threads = recorded_threads(images, analysis, groups);
        // Independent of the number of workers, so that sums are, too.
        let parts = parts(threads.iter().map(|thread| thread.row.contexts.len()), PART);
        let measure = |at: usize| {
            let (mut durations, mut first_calls) = (ByContext::new(), Vec::new());
            let mut histogram = Histogram::default();
            each_context(&threads[parts[at].clone()], |visit| {
                let key = (visit.group, visit.part.context);
                visit.context.read_histogram(&mut histogram);
                let of_group = durations.entry(key).or_default();
                of_group.add(&visit.context, &histogram, &visit.part, &visit.scale);
                first_calls.extend(first::find(&visit, &histogram));
            });
            (durations, first_calls)
        };
        let (mut durations, mut first_calls) = (ByContext::new(), Vec::new());
        workers.in_order(parts.len(), measure, |(of_part, firsts)| {
            first_calls.extend(firsts);
            for (key, more) in of_part {
                durations.entry(key).or_default().merge(&more);
            }
        });
        let pure = measure::pure_by_api(&durations, |context| analysis.contexts[context].api);
        for call in &mut first_calls {
            *call = call.net(pure.get(&(call.group, call.api)).copied().unwrap_or(1.0));
        }
        let mut holders = rows::Holders::new(analysis, &durations);
        let slow =
            slow::Thresholds::new(&durations, &pure, |context| analysis.contexts[context].api);
        let count = |at: usize| {
            let (mut counts, mut slow_calls) = (Vec::new(), Vec::new());
            each_context(&threads[parts[at].clone()], |visit| {
                let Some(of_group) = slow.of_visit(&visit) else { return };
                let longest = visit.scale.ns(visit.context.node().max_ticks as f64);
                if longest > holders.threshold_ns(&visit).min(of_group.threshold_ns) {
                    let histogram = visit.context.histogram();
                    counts.extend(holders.count(&visit, &histogram));
                    slow_calls.extend(slow::find(&visit, &histogram, of_group));
                }
            });
            (counts, slow_calls)
        };
        let (mut counts, mut slow_calls) = (Vec::new(), Vec::new());
        workers.in_order(parts.len(), count, |(of_part, slow)| {
            counts.extend(of_part);
            slow_calls.extend(slow);
        });
        counts.into_iter().for_each(|count| holders.add(count));
        Self { rows: holders.rows(analysis), first_calls, slow_calls }
    }
}

/// A thread, its row and its group.
struct RecordedThread<'r> {
    thread: Thread<'r>,
    /// Its number in the analysis.
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

/// A context of a thread, and everything that contains it.
pub(crate) struct Visit<'r> {
    pub(crate) group: u32,
    /// The thread's number in the analysis.
    pub(crate) thread: u32,
    pub(crate) api: u32,
    pub(crate) context: Context<'r>,
    pub(crate) part: ThreadContext,
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
    /// Converts ticks of the image to nanoseconds.
    pub(crate) fn ns(&self, ticks: f64) -> f64 {
        ticks * self.ns_per_tick
    }
}

/// Returns how many of the durations are in buckets above `bucket`.
fn above(histogram: &Histogram, bucket: usize) -> u64 {
    count(histogram, |at| at > bucket)
}

/// Returns how many of the durations are in buckets for which `wanted` is true; saturates, since a damaged recording
/// may have any counts.
fn count(histogram: &Histogram, wanted: impl Fn(usize) -> bool) -> u64 {
    let counts = histogram.buckets().filter(|&(at, _)| wanted(at));
    counts.fold(0, |sum: u64, (_, count)| sum.saturating_add(count))
}
