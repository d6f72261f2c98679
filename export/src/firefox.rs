//! The processed profile format of the Firefox Profiler, <https://profiler.firefox.com>.

use std::collections::HashMap;
use std::time::Duration;

use fxprof_processed_profile::{
    CategoryColor, CategoryHandle, CpuDelta, Frame, FrameFlags, FrameInfo, MarkerFieldFlags,
    MarkerFieldFormat, MarkerTiming, Profile, ReferenceTimestamp, SamplingInterval,
    StaticSchemaMarker, StaticSchemaMarkerField, StringHandle, ThreadHandle, Timestamp,
};

use crate::Error;
use crate::trace::{Trace, TraceCall, TraceThread};

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
/// is a sample of those that were open, with a weight of so many microseconds.
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
        self.samples(own, &calls);
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

    /// Between the moments at which what is open changes.
    fn samples(&mut self, own: ThreadHandle, calls: &[TraceCall]) {
        let mut open: Vec<TraceCall> = Vec::new();
        let mut since = 0;
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
            if !open.is_empty() && now > since {
                self.sample(own, &open, since, now);
            }
            since = now;
            if opens {
                open.extend(coming);
                coming = next.next();
            } else {
                open.pop();
            }
        }
        // What follows is the thread's own.
        self.profile.add_sample(own, self.at(since), None, CpuDelta::ZERO, 0);
    }

    fn sample(&mut self, own: ThreadHandle, open: &[TraceCall], since: u64, until: u64) {
        let mut frames = Vec::with_capacity(open.len());
        for call in open {
            let Some(function) = self.trace.functions.get(call.function as usize) else { continue };
            let label = self.profile.intern_string(&function.name);
            frames.push(FrameInfo {
                frame: Frame::Label(label),
                category_pair: self.categories[&*function.library].into(),
                flags: FrameFlags::empty(),
            });
        }
        let stack = self.profile.intern_stack_frames(own, frames.into_iter());
        let weight = i32::try_from((until - since).div_ceil(STEP_NS)).unwrap_or(i32::MAX);
        self.profile.add_sample(own, self.at(since), stack, CpuDelta::ZERO, weight);
    }
}

#[cfg(test)]
mod tests;
