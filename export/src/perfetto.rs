//! The trace format of Perfetto: `protos/perfetto/trace` of <https://github.com/google/perfetto>.
//!
//! The messages are written down with their field numbers; those that are not filled in are left out.

mod messages;
mod samples;

use prost::Message;

use crate::trace::{Trace, TraceCall, TraceSyscall, TraceThread, TraceWait};
use messages::{
    Annotation, ClockSnapshot, ClockValue, CounterDescriptor, Interned, InternedData, Packet,
    ProcessDescriptor, ThreadDescriptor, TraceMessage, TrackDescriptor, TrackEvent,
};

/// `TrackEvent.Type`.
const SLICE_BEGIN: i32 = 1;
const SLICE_END: i32 = 2;
const INSTANT: i32 = 3;
const COUNTER: i32 = 4;
/// `BuiltinClock`.
const REALTIME: u32 = 1;
const MONOTONIC: u32 = 3;
/// `TracePacket.SequenceFlags`: interned data begin anew, and are needed.
const CLEARED: u32 = 1;
const NEEDED: u32 = 2;
/// All packets are of one sequence.
const SEQUENCE: u32 = 1;
/// Tracks of a thread: its own, and those below it.
const TRACKS: u64 = 3;
const WAITS: u64 = 1;
const SYSCALLS: u64 = 2;
/// Steps of a counter over the length of the trace.
const STEPS: u64 = 500;

/// `trace` for Perfetto's viewer and trace processor: a track for each process and thread; calls as slices, with their library as
/// category; waits, and system calls with their arguments, as slices of tracks of their own below, waits with flows from who has ended them; marks; and, as counters, the calls that begin
/// in a second and the threads that do not wait.
#[must_use]
pub fn perfetto(trace: &Trace) -> Vec<u8> {
    let mut writer = Writer::default();
    writer.begin(trace);
    let mut flow = 0;
    for (place, process) in trace.processes.iter().enumerate() {
        let own = uuid(place, 0);
        writer.track(TrackDescriptor {
            uuid: Some(own),
            process: Some(ProcessDescriptor {
                pid: Some(process.pid as i32),
                cmdline: process.command.clone(),
                process_name: Some(process.name.clone()),
                start_timestamp_ns: i64::try_from(process.start_ns).ok(),
            }),
            ..TrackDescriptor::default()
        });
        for (number, thread) in process.threads.iter().enumerate() {
            let track = thread_track(place, number);
            writer.track(TrackDescriptor {
                uuid: Some(track),
                parent_uuid: Some(own),
                thread: Some(ThreadDescriptor {
                    pid: Some(process.pid as i32),
                    tid: Some(thread.tid as i32),
                    thread_name: Some(thread.name.clone()),
                }),
                ..TrackDescriptor::default()
            });
            for (below, name, is_used) in [
                (WAITS, "waits", !thread.waits.is_empty()),
                (SYSCALLS, "system calls", !thread.syscalls.is_empty()),
            ] {
                if is_used {
                    writer.track(TrackDescriptor {
                        uuid: Some(track + below),
                        parent_uuid: Some(track),
                        name: Some(name.to_owned()),
                        ..TrackDescriptor::default()
                    });
                }
            }
        }
    }
    for (place, process) in trace.processes.iter().enumerate() {
        for (number, thread) in process.threads.iter().enumerate() {
            let track = thread_track(place, number);
            writer.calls(track, &thread.nested());
            for wait in &thread.waits {
                flow += 1;
                writer.wait(track + WAITS, wait, flow);
            }
            for call in &thread.syscalls {
                writer.syscall(track + SYSCALLS, call, thread.end_ns);
            }
            for (at_ns, name) in &thread.marks {
                writer.event(
                    *at_ns,
                    TrackEvent {
                        r#type: Some(INSTANT),
                        track_uuid: Some(track),
                        name: Some(name.clone()),
                        ..TrackEvent::default()
                    },
                );
            }
        }
    }
    writer.samples(trace);
    writer.counters(trace);
    // By time, and what ends before what begins; what has the same place keeps its order.
    writer.events.sort_by_key(|packet| packet.timestamp);
    writer.packets.append(&mut writer.events);
    TraceMessage { packet: writer.packets }.encode_to_vec()
}

/// The track of a process: `thread` 0; of its threads and what is below them: from [`TRACKS`] on.
fn uuid(process: usize, thread: u64) -> u64 {
    ((process as u64 + 1) << 32) | thread
}

fn thread_track(process: usize, thread: usize) -> u64 {
    uuid(process, TRACKS * (thread as u64 + 1))
}

#[derive(Default)]
struct Writer {
    packets: Vec<Packet>,
    events: Vec<Packet>,
    /// Number of each function's library among the categories.
    libraries: Vec<u64>,
}

impl Writer {
    fn begin(&mut self, trace: &Trace) {
        let mut libraries: Vec<&str> = trace.functions.iter().map(|f| &*f.library).collect();
        libraries.sort_unstable();
        libraries.dedup();
        let number = |name: &str| libraries.binary_search(&name).map_or(0, |at| at as u64 + 1);
        self.libraries = trace.functions.iter().map(|f| number(&f.library)).collect();
        let interned = |iid: u64, name: &str| Interned { iid: Some(iid), name: Some(name.into()) };
        let clock = |clock_id, timestamp| ClockValue {
            clock_id: Some(clock_id),
            timestamp: Some(timestamp),
        };
        let start = trace.processes.iter().map(|process| process.start_ns).min().unwrap_or(0);
        let realtime = trace.realtime_ns.saturating_add(start);
        self.packets.push(Packet {
            clock_snapshot: Some(ClockSnapshot {
                clocks: vec![clock(MONOTONIC, start), clock(REALTIME, realtime)],
                primary_trace_clock: Some(MONOTONIC),
            }),
            trusted_packet_sequence_id: Some(SEQUENCE),
            ..Packet::default()
        });
        self.packets.push(Packet {
            trusted_packet_sequence_id: Some(SEQUENCE),
            sequence_flags: Some(CLEARED),
            interned_data: Some(InternedData {
                event_categories: (1..)
                    .zip(&libraries)
                    .map(|(i, name)| interned(i, name))
                    .collect(),
                event_names: (1..)
                    .zip(&trace.functions)
                    .map(|(i, f)| interned(i, &f.name))
                    .collect(),
                ..InternedData::default()
            }),
            ..Packet::default()
        });
    }

    fn track(&mut self, descriptor: TrackDescriptor) {
        self.packets.push(Packet {
            trusted_packet_sequence_id: Some(SEQUENCE),
            track_descriptor: Some(descriptor),
            ..Packet::default()
        });
    }

    fn event(&mut self, at_ns: u64, event: TrackEvent) {
        self.events.push(Packet {
            timestamp: Some(at_ns),
            timestamp_clock_id: Some(MONOTONIC),
            trusted_packet_sequence_id: Some(SEQUENCE),
            sequence_flags: Some(NEEDED),
            track_event: Some(event),
            ..Packet::default()
        });
    }

    fn end(&mut self, at_ns: u64, track: u64) {
        let event = TrackEvent {
            r#type: Some(SLICE_END),
            track_uuid: Some(track),
            ..TrackEvent::default()
        };
        self.event(at_ns, event);
    }

    /// Begins and ends in the order of a walk, so that those of one moment are in it too.
    fn calls(&mut self, track: u64, calls: &[TraceCall]) {
        let mut open: Vec<u64> = Vec::new();
        for call in calls {
            while open.len() > usize::from(call.depth) {
                let end_ns = open.pop().unwrap_or_default();
                self.end(end_ns, track);
            }
            let library = self.libraries.get(call.function as usize).copied();
            let unfinished = call.is_open.then(|| Annotation {
                name: Some("had not returned".to_owned()),
                bool_value: Some(true),
                ..Annotation::default()
            });
            self.event(
                call.start_ns,
                TrackEvent {
                    r#type: Some(SLICE_BEGIN),
                    track_uuid: Some(track),
                    name_iid: Some(u64::from(call.function) + 1),
                    category_iids: library.into_iter().collect(),
                    debug_annotations: unfinished.into_iter().collect(),
                    ..TrackEvent::default()
                },
            );
            open.push(call.end_ns);
        }
        while let Some(end_ns) = open.pop() {
            self.end(end_ns, track);
        }
    }

    fn wait(&mut self, track: u64, wait: &TraceWait, flow: u64) {
        self.event(
            wait.start_ns,
            TrackEvent {
                r#type: Some(SLICE_BEGIN),
                track_uuid: Some(track),
                name: Some(wait.what.clone()),
                ..TrackEvent::default()
            },
        );
        if let Some((process, thread)) = wait.waker {
            self.event(
                wait.woken_ns,
                TrackEvent {
                    r#type: Some(INSTANT),
                    track_uuid: Some(thread_track(process, thread)),
                    name: Some("wakes".to_owned()),
                    flow_ids: vec![flow],
                    ..TrackEvent::default()
                },
            );
        }
        let ends = wait.waker.map(|_| flow);
        self.end(wait.end_ns, track);
        if let Some(event) = self.events.last_mut().and_then(|packet| packet.track_event.as_mut()) {
            event.terminating_flow_ids = ends.into_iter().collect();
        }
    }

    fn syscall(&mut self, track: u64, call: &TraceSyscall, until_ns: u64) {
        let annotation = |name: &str, text: &str| Annotation {
            name: Some(name.to_owned()),
            string_value: Some(text.to_owned()),
            ..Annotation::default()
        };
        let name = call.call.split('(').next().unwrap_or_default();
        self.event(
            call.start_ns,
            TrackEvent {
                r#type: Some(SLICE_BEGIN),
                track_uuid: Some(track),
                name: Some(name.to_owned()),
                debug_annotations: vec![
                    annotation("call", &call.call),
                    annotation("result", &call.result),
                ],
                ..TrackEvent::default()
            },
        );
        self.end(call.end_ns.unwrap_or(until_ns).max(call.start_ns), track);
    }

    fn counters(&mut self, trace: &Trace) {
        let threads = || trace.processes.iter().flat_map(|process| &process.threads);
        let start = threads().map(|thread| thread.start_ns).min().unwrap_or(0);
        let end = threads().map(|thread| thread.end_ns).max().unwrap_or(start);
        let step = ((end - start) / STEPS).max(1);
        let begun = threads().flat_map(|thread| &thread.calls).map(|call| call.start_ns);
        let mut counts = vec![0_u64; ((end - start) / step) as usize + 1];
        for at_ns in begun {
            if let Some(count) = counts.get_mut((at_ns.saturating_sub(start) / step) as usize) {
                *count += 1;
            }
        }
        let rate = |count: u64| (count as f64 * 1e9 / step as f64).round() as i64;
        let calls = (0..).zip(&counts).map(|(at, &count)| (start + at * step, rate(count)));
        self.counter(1, "calls per second", calls.collect());
        let mut changes: Vec<(u64, i64)> = threads().flat_map(awake).collect();
        changes.sort_unstable();
        let mut awake = 0;
        let mut values: Vec<(u64, i64)> = Vec::new();
        for (at_ns, change) in changes {
            awake += change;
            match values.last_mut() {
                Some(last) if last.0 == at_ns => last.1 = awake,
                _ => values.push((at_ns, awake)),
            }
        }
        self.counter(2, "threads that do not wait", values);
    }

    fn counter(&mut self, number: u64, name: &str, values: Vec<(u64, i64)>) {
        self.track(TrackDescriptor {
            uuid: Some(number),
            name: Some(name.to_owned()),
            counter: Some(CounterDescriptor { unit_name: Some("count".to_owned()) }),
            ..TrackDescriptor::default()
        });
        for (at_ns, value) in values {
            self.event(
                at_ns,
                TrackEvent {
                    r#type: Some(COUNTER),
                    track_uuid: Some(number),
                    counter_value: Some(value),
                    ..TrackEvent::default()
                },
            );
        }
    }
}

/// When there is a thread more that does not wait, and one less.
fn awake(thread: &TraceThread) -> Vec<(u64, i64)> {
    let mut changes = vec![(thread.start_ns, 1), (thread.end_ns, -1)];
    for wait in &thread.waits {
        changes.extend([(wait.start_ns, -1), (wait.end_ns, 1)]);
    }
    changes
}

#[cfg(test)]
mod tests;
