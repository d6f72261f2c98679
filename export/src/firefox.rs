//! The processed profile format of the Firefox Profiler, <https://profiler.firefox.com>.

use std::collections::HashMap;
use std::time::Duration;

use fxprof_processed_profile::{
    CategoryColor, CategoryHandle, CpuDelta, Frame, FrameFlags, FrameInfo, MarkerFieldFlags,
    MarkerFieldFormat, MarkerTiming, Profile, ReferenceTimestamp, SamplingInterval, StackHandle,
    StaticSchemaMarker, StaticSchemaMarkerField, StringHandle, ThreadHandle, Timestamp,
};

use crate::Error;
use crate::trace::{Trace, TraceCall, TraceThread, TraceWait};

/// A sample stands for so much time.
const STEP_NS: u64 = 1_000;

/// Colours of libraries, by turns.
const COLOURS: [CategoryColor; 8] = [
    CategoryColor::Blue,
    CategoryColor::Green,
    CategoryColor::Orange,
    CategoryColor::Purple,
    CategoryColor::Yellow,
    CategoryColor::Magenta,
    CategoryColor::LightBlue,
    CategoryColor::Brown,
];

/// A call, a wait or a moment.
struct TimedMarker {
    name: StringHandle,
    detail: StringHandle,
    category: CategoryHandle,
}

impl StaticSchemaMarker for TimedMarker {
    const UNIQUE_MARKER_TYPE_NAME: &'static str = "chase";
    const CHART_LABEL: Option<&'static str> = Some("{marker.name}");
    const TABLE_LABEL: Option<&'static str> = Some("{marker.name} ({marker.data.detail})");
    const FIELDS: &'static [StaticSchemaMarkerField] = &[StaticSchemaMarkerField {
        key: "detail",
        label: "Library, or what was waited for",
        format: MarkerFieldFormat::String,
        flags: MarkerFieldFlags::SEARCHABLE,
    }];

    fn name(&self, _: &mut Profile) -> StringHandle {
        self.name
    }

    fn category(&self, _: &mut Profile) -> CategoryHandle {
        self.category
    }

    fn string_field_value(&self, _: u32) -> StringHandle {
        self.detail
    }

    fn number_field_value(&self, _: u32) -> f64 {
        0.0
    }
}

/// `trace` as a document for the Firefox Profiler. Each call is a marker; and between the moments at which calls begin and end, there
/// is a sample of those that were open, with a weight of so many microseconds; one without a weight where none was open. The samples
/// that were taken of what a thread ran are a thread of their own behind it.
///
/// # Errors
///
/// If it can't be put into JSON.
pub fn firefox(trace: &Trace) -> Result<String, Error> {
    let start = trace.processes.iter().map(|process| process.start_ns).min().unwrap_or(0);
    let realtime = Duration::from_nanos(trace.realtime_ns.saturating_add(start));
    let reference = ReferenceTimestamp::from_duration_since_unix_epoch(realtime);
    let interval = SamplingInterval::from_nanos(STEP_NS);
    let mut profile = Profile::new(&trace.title, reference, interval);
    let mut libraries: Vec<&str> = trace.functions.iter().map(|f| &*f.library).collect();
    libraries.sort_unstable();
    libraries.dedup();
    let colours = libraries.iter().zip(COLOURS.iter().cycle());
    let categories: HashMap<&str, CategoryHandle> =
        colours.map(|(name, &colour)| (*name, profile.add_category(name, colour))).collect();
    let waiting = profile.add_category("waits", CategoryColor::Gray);
    let mut writer = Writer { trace, profile, categories, waiting, start };
    for process in &trace.processes {
        let since = writer.at(process.start_ns);
        let handle = writer.profile.add_process(&process.name, process.pid, since);
        writer.profile.set_process_end_time(handle, writer.at(process.end_ns));
        for thread in &process.threads {
            let since = writer.at(thread.start_ns);
            let own = writer.profile.add_thread(handle, thread.tid, since, thread.is_main);
            writer.profile.set_thread_name(own, &thread.name);
            writer.profile.set_thread_end_time(own, writer.at(thread.end_ns));
            writer.profile.set_thread_show_markers_in_timeline(own, true);
            writer.thread(own, thread);
            if !thread.samples.is_empty() {
                let since = writer.at(thread.start_ns);
                let own = writer.profile.add_thread(handle, thread.tid, since, false);
                writer.profile.set_thread_name(own, &format!("{} (samples)", thread.name));
                writer.profile.set_thread_end_time(own, writer.at(thread.end_ns));
                writer.taken(own, thread);
            }
        }
    }
    Ok(serde_json::to_string(&writer.profile)?)
}

struct Writer<'t> {
    trace: &'t Trace,
    profile: Profile,
    categories: HashMap<&'t str, CategoryHandle>,
    waiting: CategoryHandle,
    start: u64,
}

impl Writer<'_> {
    fn at(&self, ns: u64) -> Timestamp {
        Timestamp::from_nanos_since_reference(ns.saturating_sub(self.start))
    }

    fn thread(&mut self, own: ThreadHandle, thread: &TraceThread) {
        let calls = thread.nested();
        for call in &calls {
            let Some(function) = self.trace.functions.get(call.function as usize) else { continue };
            let category = self.categories[&*function.library];
            let (start, end) = (self.at(call.start_ns), self.at(call.end_ns));
            let timing = match call.is_open {
                true => MarkerTiming::IntervalStart(start),
                false => MarkerTiming::Interval(start, end),
            };
            self.marker(own, timing, &function.name, &function.library, category);
        }
        for wait in &thread.waits {
            let timing = MarkerTiming::Interval(self.at(wait.start_ns), self.at(wait.end_ns));
            self.marker(own, timing, "wait", &wait.what, self.waiting);
        }
        for (at_ns, name) in &thread.marks {
            let timing = MarkerTiming::Instant(self.at(*at_ns));
            self.marker(own, timing, name, "mark", CategoryHandle::OTHER);
        }
        self.samples(own, thread, &calls);
    }

    fn marker(
        &mut self,
        own: ThreadHandle,
        timing: MarkerTiming,
        name: &str,
        detail: &str,
        category: CategoryHandle,
    ) {
        let name = self.profile.intern_string(name);
        let detail = self.profile.intern_string(detail);
        self.profile.add_marker(own, timing, TimedMarker { name, detail, category });
    }

    /// One for each moment at which what is open changes. What is not known to wait counts as use of a processor: without it the reader
    /// takes threads for idle, and draws nothing.
    fn samples(&mut self, own: ThreadHandle, thread: &TraceThread, calls: &[TraceCall]) {
        let mut open: Vec<TraceCall> = Vec::new();
        let mut clocks = Clocks::new(thread);
        let mut since = thread.start_ns;
        let mut next = calls.iter();
        let mut coming = next.next();
        loop {
            let ending = open.last().map(|call| call.end_ns);
            let (now, opens) = match (coming, ending) {
                (Some(call), Some(end)) if call.start_ns < end => (call.start_ns, true),
                (_, Some(end)) => (end, false),
                (Some(call), None) => (call.start_ns, true),
                (None, None) => break,
            };
            if now > since {
                self.sample(own, &open, &mut clocks, since, now);
                since = now;
            }
            if opens {
                open.extend(coming);
                coming = next.next();
            } else {
                open.pop();
            }
        }
        // What follows is the thread's own.
        let end = thread.end_ns.max(since);
        self.sample(own, &[], &mut clocks, since, end);
        if end > since {
            self.sample(own, &[], &mut clocks, end, end);
        }
    }

    /// The samples that were taken of a thread. Each stands for the time up to it, at most that of its ticks.
    fn taken(&mut self, own: ThreadHandle, thread: &TraceThread) {
        let tick_ns = 1_000_000_000 / self.trace.sample_hz.max(1);
        let mut before = None;
        for sample in &thread.samples {
            let ticks_ns = u64::from(sample.stands_for) * tick_ns;
            // Of the first one, its reader takes no use.
            let busy_ns =
                before.map_or(0, |before| ticks_ns.min(sample.at_ns.saturating_sub(before)));
            before = Some(sample.at_ns);
            let stack = self.trace.stacks.get(sample.stack as usize);
            let stack = self.stack(own, stack.into_iter().flatten().copied());
            let busy = CpuDelta::from_micros(busy_ns / STEP_NS);
            let weight = clamped(ticks_ns / STEP_NS);
            self.profile.add_sample(own, self.at(sample.at_ns), stack, busy, weight);
        }
    }

    fn stack(
        &mut self,
        own: ThreadHandle,
        functions: impl Iterator<Item = u32>,
    ) -> Option<StackHandle> {
        let mut frames = Vec::new();
        for function in functions {
            let Some(function) = self.trace.functions.get(function as usize) else { continue };
            let label = self.profile.intern_string(&function.name);
            frames.push(FrameInfo {
                frame: Frame::Label(label),
                category_pair: self.categories[&*function.library].into(),
                flags: FrameFlags::empty(),
            });
        }
        self.profile.intern_stack_frames(own, frames.into_iter())
    }

    /// What was open from one moment to another. What is the thread's own weighs nothing: sums are of calls.
    fn sample(
        &mut self,
        own: ThreadHandle,
        open: &[TraceCall],
        clocks: &mut Clocks<'_>,
        since: u64,
        until: u64,
    ) {
        let (stack, weight) = match open {
            [] => (None, 0),
            _ => {
                let stack = self.stack(own, open.iter().map(|call| call.function));
                (stack, clocks.in_calls.steps(until - since))
            }
        };
        let busy = CpuDelta::from_micros(clocks.busy_until(since));
        self.profile.add_sample(own, self.at(since), stack, busy, clamped(weight));
    }
}

fn clamped(weight: u64) -> i32 {
    i32::try_from(weight).unwrap_or(i32::MAX)
}

/// Nanoseconds in whole steps. What is left of one counts with the next, so that sums of many short times are right.
#[derive(Default)]
struct Steps {
    rest_ns: u64,
}

impl Steps {
    fn steps(&mut self, ns: u64) -> u64 {
        let ns = self.rest_ns.saturating_add(ns);
        self.rest_ns = ns % STEP_NS;
        ns / STEP_NS
    }
}

/// How far a thread has come.
struct Clocks<'t> {
    in_calls: Steps,
    busy: Steps,
    /// Up to when `busy` counts.
    until_ns: u64,
    waits: &'t [TraceWait],
}

impl<'t> Clocks<'t> {
    fn new(thread: &'t TraceThread) -> Self {
        let [in_calls, busy] = [Steps::default(), Steps::default()];
        Self { in_calls, busy, until_ns: thread.start_ns, waits: &thread.waits }
    }

    /// Steps since the moment before, without waits.
    fn busy_until(&mut self, now: u64) -> u64 {
        let since = self.until_ns;
        self.until_ns = now.max(since);
        let mut waited = 0;
        while let Some((wait, later)) = self.waits.split_first() {
            let (start, end) = (wait.start_ns.max(since), wait.end_ns.min(now));
            waited += end.saturating_sub(start);
            if wait.end_ns > now {
                break;
            }
            self.waits = later;
        }
        self.busy.steps(now.saturating_sub(since).saturating_sub(waited))
    }
}

#[cfg(test)]
mod tests;
