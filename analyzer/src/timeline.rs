//! What happened when: the threads of a run, and each thread's recorded single calls, waits and marks.
//!
//! Times are in ns since the start of the run, as in [`Analysis`]. Functions, threads and processes are given by
//! their numbers in the analysis.

use std::collections::HashMap;

use chase_recorder::layout::{EVENT_CALL, EVENT_MARK, EventRecord};
use chase_recorder::reader::{Context, Thread};
use chase_recorder::syscalls::NO_SYSCALL;
use serde::Serialize;

use crate::address::CodeAddress;
use crate::analysis::Analysis;
use crate::blocking::Cause;
use crate::causes::Purpose;
use crate::clock::{Ns, Ticks};
use crate::common_time::CommonTime;
use crate::groups::{Groups, Unnamed};
use crate::image::Image;
use crate::long_waits::{LongWait, long_waits};
use crate::syscalls::is_for_memory_map;
use crate::timed_samples::{TimedSample, timed_samples};
use crate::wait_causes::{futex_in, futex_outside, of_wait};

/// A run over time.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Timeline {
    /// When the last thread ended.
    pub end_ns: Ns,
    /// One lane for each thread of [`Analysis::threads`], in the same order.
    pub lanes: Vec<Lane>,
    /// Names of marks.
    pub marks: Vec<String>,
    /// Calls shorter than this were not recorded: the highest such limit of all processes; 0: all were recorded.
    /// `None`: no process recorded any. (Calls of chosen functions may all be there.)
    pub limit_ns: Option<Ns>,
    /// A lower bound of the times without a processor ([`Lane::preempted`]) that are missing for lack of room: the thread seems
    /// to run then.
    pub lost_preempted: u64,
}

/// A thread over time.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Lane {
    /// By number in [`Analysis::threads`].
    pub thread: usize,
    /// By number in [`Analysis::processes`].
    pub process: usize,
    /// When it started.
    pub start_ns: Ns,
    /// When it ended, or the latest time about which anything is known.
    pub end_ns: Ns,
    /// Calls by start, outer ones before those inside.
    pub calls: Vec<TimedCall>,
    /// Waits of a millisecond or more that a companion observed, by start.
    pub blocked: Vec<BlockedSpan>,
    /// Times of a millisecond or more in which it was ready and others had the processors, as a companion observed, by start.
    /// A wait's end, of which that may be true too, is not among them ([`BlockedSpan::ready_ns`]).
    pub preempted: Vec<PreemptedSpan>,
    /// Samples of what it ran, by time.
    pub samples: Vec<LaneSample>,
    /// Marks, by time.
    pub marks: Vec<Mark>,
    /// Events that were overwritten by later ones.
    pub overwritten: u64,
    /// Events for which there was no room, or that were half written when the process was killed.
    pub lost: u64,
}

/// A call.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct TimedCall {
    /// By number in [`Analysis::apis`].
    pub api: u32,
    /// By number in [`Analysis::contexts`].
    pub context: u32,
    /// When it began.
    pub start_ns: Ns,
    /// How long it took, without the hook's overhead.
    pub ns: Ns,
    /// How many of the earlier calls it is in.
    pub depth: u16,
    /// Whether it had not returned when the thread, or what is known of it, ended.
    pub is_open: bool,
}

/// A wait.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BlockedSpan {
    /// When it began.
    pub start_ns: Ns,
    /// Its duration, until the thread ran again.
    pub ns: Ns,
    /// The part of it after the thread was woken.
    pub ready_ns: Ns,
    /// What was waited for.
    pub cause: SpanCause,
    /// The system call in which it waited, if it was one.
    pub syscall: Option<u32>,
    /// The API in which it waited, by number in [`Analysis::apis`].
    pub api: Option<u32>,
    /// The lane of the thread that ended it, if that is one of the run.
    pub waker: Option<usize>,
    /// The API that the waker was in.
    pub waker_api: Option<u32>,
    /// Name of the waker, if it is another process.
    pub waker_name: String,
    /// The return address of the call in which it waited.
    #[serde(skip)]
    pub site: Option<CodeAddress>,
    /// A process in which that is valid, by number in [`Analysis::processes`].
    #[serde(skip)]
    pub process: usize,
    /// The return address of the call that the waker was in, valid in the waker's process.
    #[serde(skip)]
    pub waker_site: Option<CodeAddress>,
}

impl BlockedSpan {
    /// Returns what the wait, of a thread by number, is for, as [`Analysis::parts_of_waits`] has it.
    #[must_use]
    pub fn is_for(&self, analysis: &Analysis, thread: u32) -> Cause {
        let row = self.api.and_then(|api| analysis.apis.get(api as usize));
        let futex = match row {
            _ if self.cause == SpanCause::Recording => return Cause::Other,
            // It was stopped.
            _ if self.cause == SpanCause::Other && self.syscall.is_none() => return Cause::Other,
            // What the name tells holds for all of its waits.
            Some(row) if row.waits_for.is_some() => return analysis.waits_for(self.api, thread),
            Some(row) => futex_in(row),
            None => {
                let row = analysis.threads.get(thread as usize);
                let of_thread = |row| futex_outside(row, &analysis.processes, &analysis.objects);
                row.map_or(Cause::Other, of_thread)
            }
        };
        let number = self.syscall.unwrap_or(NO_SYSCALL);
        let futex = match futex {
            Cause::Other => self.mostly_at_words(analysis, thread),
            told => told,
        };
        let for_memory_map = is_for_memory_map(number, self.cause == SpanCause::Threads);
        of_wait(number, for_memory_map, futex)
    }

    /// What most of the thread's waits in this place are for of those that may be at a word of memory.
    fn mostly_at_words(&self, analysis: &Analysis, thread: u32) -> Cause {
        let parts = analysis.parts_of_waits(self.api, thread);
        let mut causes = parts.into_iter().map(|(cause, _)| cause);
        let may_be = |cause: &Cause| {
            use Cause::{Barrier, Condition, Lock};
            matches!(cause, Lock | Condition | Barrier)
        };
        causes.find(may_be).unwrap_or(Cause::Other)
    }
}

/// A sample of what a thread ran.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct LaneSample {
    /// When, and what.
    #[serde(flatten)]
    pub sample: TimedSample,
    /// The context of the innermost call, by number in [`Analysis::contexts`]; `None`: it was in none.
    pub context: Option<u32>,
}

/// A time in which a thread was ready to run and others had the processors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct PreemptedSpan {
    /// When it began.
    pub start_ns: Ns,
    /// How long it was.
    pub ns: Ns,
}

/// What a thread waits for, as distinguished by colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum SpanCause {
    /// A lock, a condition, a barrier, a join: other threads.
    Threads,
    /// A file, a device, a page.
    File,
    /// A pipe, a socket, a poll.
    Connection,
    /// Only time.
    Time,
    /// A child process.
    Process,
    /// The hook, for a moment in which other threads change what all of them share.
    Recording,
    /// Unknown.
    Other,
}

/// A moment marked by the application.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Mark {
    /// The time.
    pub at_ns: Ns,
    /// The name, by number in [`Timeline::marks`].
    pub name: u32,
}

/// Returns the timeline of `images`, which are those of `analysis` and `groups`.
#[must_use]
pub fn timeline(images: &[Image], analysis: &Analysis, groups: &Groups) -> Timeline {
    let time = CommonTime::new(images);
    let starts = images.iter().map(|image| time.of_ticks(image, image.start()).0);
    let start_ns = starts.min().unwrap_or_default();
    let mut marks = Marks::default();
    let files = images.iter().filter_map(|image| image.syscalls.as_ref());
    let lost_preempted = files.map(|file| file.header().lost_preempted).max().unwrap_or_default();
    let mut timeline = Timeline { limit_ns: limit(images), lost_preempted, ..Timeline::default() };
    let mut threads: HashMap<(usize, u32), Thread<'_>> = HashMap::new();
    for (process, image) in images.iter().enumerate() {
        for thread in image.recording.threads() {
            threads.insert((process, thread.record().index), thread);
        }
    }
    let times = long_waits(images, analysis, groups, &Unnamed);
    let samples = timed_samples(images, analysis, groups);
    for ((number, row), (times, samples)) in
        analysis.threads.iter().enumerate().zip(times.into_iter().zip(samples))
    {
        let preempted =
            |(from, to): (u64, u64)| PreemptedSpan { start_ns: Ns(from), ns: Ns(to - from) };
        let mut lane = Lane {
            thread: number,
            process: row.process,
            start_ns: row.start_ns,
            end_ns: row.end_ns,
            blocked: times.waits.into_iter().map(blocked).collect(),
            preempted: times.preempted.into_iter().map(preempted).collect(),
            samples: samples.into_iter().map(LaneSample::without_context).collect(),
            ..Lane::default()
        };
        if let (Some(thread), Some(image)) =
            (threads.get(&(row.process, row.thread)), images.get(row.process))
        {
            let since = |moment: Ticks| Ns(time.of_ticks(image, moment).0.saturating_sub(start_ns));
            Filling { image, analysis, number, since }.fill(&mut lane, *thread, &mut marks);
        }
        timeline.end_ns = timeline.end_ns.max(lane.end_ns);
        timeline.lanes.push(lane);
    }
    timeline.marks = marks.names;
    timeline
}

impl LaneSample {
    fn without_context(sample: TimedSample) -> Self {
        Self { sample, context: None }
    }
}

fn blocked(long: LongWait) -> BlockedSpan {
    let LongWait { begin_ns, woken_ns, end_ns, waker, syscall, wait, .. } = long;
    // Whoever ended a wait of the hook did not mean to, as the program has it.
    let is_programs = !long.is_own;
    let waker = waker.filter(|_| is_programs);
    let waker_api = long.waker_api.filter(|_| is_programs);
    let waker_site = long.waker_site.filter(|_| is_programs);
    let waker_name = if is_programs { long.waker_name } else { String::new() };
    BlockedSpan {
        start_ns: Ns(begin_ns),
        ns: Ns(end_ns - begin_ns),
        ready_ns: Ns(woken_ns.map_or(0, |woken| end_ns.saturating_sub(woken.max(begin_ns)))),
        cause: match wait.purpose {
            _ if long.is_own => SpanCause::Recording,
            Purpose::Lock
            | Purpose::ReadLock
            | Purpose::WriteLock
            | Purpose::Allocator
            | Purpose::Interpreter
            | Purpose::MemoryMap
            | Purpose::Condition
            | Purpose::Barrier
            | Purpose::Join => SpanCause::Threads,
            // By a semaphore, or by a pipe.
            Purpose::Handover if syscall.is_some_and(is_semaphore) => SpanCause::Threads,
            Purpose::Handover => SpanCause::Connection,
            Purpose::Child => SpanCause::Process,
            Purpose::Sleep => SpanCause::Time,
            Purpose::Readiness | Purpose::Network => SpanCause::Connection,
            Purpose::Sync | Purpose::File | Purpose::Page => SpanCause::File,
            Purpose::Completion | Purpose::Stopped | Purpose::Other => SpanCause::Other,
        },
        syscall,
        api: wait.api,
        waker: waker.map(|waker| waker as usize),
        waker_api,
        waker_name,
        site: wait.site,
        process: wait.process,
        waker_site,
    }
}

/// Whether a system call waits for a word of memory or for a System V semaphore: `futex`, `semop`, `semtimedop`.
fn is_semaphore(number: u32) -> bool {
    matches!(number, 202 | 65 | 220)
}

/// Returns the highest limit of the processes that recorded events.
fn limit(images: &[Image]) -> Option<Ns> {
    let of = |image: &Image| {
        let kept = image.recording.meta_value("events")?;
        kept.split(' ').next()?.parse().ok().map(Ns)
    };
    images.iter().filter_map(of).max()
}

#[derive(Default)]
struct Marks {
    names: Vec<String>,
    numbers: HashMap<String, u32>,
}

impl Marks {
    fn number(&mut self, name: String) -> u32 {
        let next = self.names.len() as u32;
        let number = *self.numbers.entry(name.clone()).or_insert(next);
        if number == next {
            self.names.push(name);
        }
        number
    }
}

/// What a lane is filled from.
struct Filling<'a, S: Fn(Ticks) -> Ns> {
    image: &'a Image,
    analysis: &'a Analysis,
    number: usize,
    since: S,
}

impl<S: Fn(Ticks) -> Ns> Filling<'_, S> {
    fn fill(&self, lane: &mut Lane, thread: Thread<'_>, marks: &mut Marks) {
        let parts = &self.analysis.threads[self.number].contexts;
        let mut contexts: HashMap<u32, u32> = HashMap::new();
        for (context, part) in thread.contexts().zip(parts) {
            contexts.insert(context.reference, part.context);
            if let Some(start) = open_since(&context) {
                let start_ns = (self.since)(start);
                let ns = Ns(lane.end_ns.0.saturating_sub(start_ns.0));
                lane.calls.extend(self.call(part.context, start_ns, ns, true));
            }
        }
        for LaneSample { sample, context } in &mut lane.samples {
            *context = contexts.get(&sample.context_ref).copied();
        }
        let events = thread.events();
        (lane.overwritten, lane.lost) = (events.overwritten, events.lost + events.torn);
        let inside_ticks = self.image.recording.header().cost_inside as f64 / 1024.0;
        for event in events.events {
            let EventRecord { start_ticks, ticks, subject, kind, .. } = event;
            let at_ns = (self.since)(Ticks(start_ticks));
            match kind {
                EVENT_CALL => {
                    let ticks = (ticks as f64 - inside_ticks).max(0.0);
                    let ns = Ns::from_f64(ticks * self.image.clock.ns_per_tick());
                    let context = contexts.get(&subject).copied();
                    lane.calls
                        .extend(context.and_then(|context| self.call(context, at_ns, ns, false)));
                }
                EVENT_MARK => {
                    let name = self.image.recording.mark(subject);
                    let name = name.map_or_else(|| "(mark)".to_owned(), |name| name.into_owned());
                    lane.marks.push(Mark { at_ns, name: marks.number(name) });
                }
                _ => {}
            }
        }
        lane.marks.sort_by_key(|mark| mark.at_ns);
        nest(&mut lane.calls);
    }

    fn call(&self, context: u32, start_ns: Ns, ns: Ns, is_open: bool) -> Option<TimedCall> {
        let api = self.analysis.contexts.get(context as usize)?.api;
        Some(TimedCall { api, context, start_ns, ns, depth: 0, is_open })
    }
}

/// Returns when the open call of a context began, if there is one: a call that has begun, and neither returned nor
/// was abandoned.
fn open_since(context: &Context<'_>) -> Option<Ticks> {
    if context.is_sampled() || context.is_inherited() {
        return None;
    }
    let node = context.node();
    let ended = context.histogram().count().saturating_add(u64::from(node.unwound));
    (node.calls > ended && node.last_start_ticks > 0).then_some(Ticks(node.last_start_ticks))
}

/// Sorts calls, and computes their depth: one is inside another if it doesn't end later, except for rounding of the
/// clock.
fn nest(calls: &mut [TimedCall]) {
    const ROUNDING_NS: u64 = 2;
    let end = |call: &TimedCall| call.start_ns.0.saturating_add(call.ns.0);
    calls.sort_by_key(|call| (call.start_ns, std::cmp::Reverse(end(call))));
    let mut open: Vec<u64> = Vec::new();
    for call in calls {
        let own_end = end(call);
        while open.last().is_some_and(|&outer| {
            outer <= call.start_ns.0 || outer.saturating_add(ROUNDING_NS) < own_end
        }) {
            open.pop();
        }
        call.depth = u16::try_from(open.len()).unwrap_or(u16::MAX);
        open.push(own_end);
    }
}
