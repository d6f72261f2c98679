//! A run's timeline as other tools want it.

mod stacks;

use chase_analyzer::{Lane, LaneSample, SpanCause, TimedCall, Timeline, narration};
use chase_export::{
    Trace, TraceCall, TraceFunction, TraceProcess, TraceSample, TraceSyscall, TraceThread,
    TraceWait,
};

use crate::report::Report;
use stacks::TraceStacks;

/// What `report` has of the run in time.
pub(crate) fn from_report(report: &Report) -> Trace {
    let analysis = &report.analysis;
    let timeline = report.timeline();
    let start = report.loaded.images.first();
    let start = start.map(|image| image.recording.header().clock_start).unwrap_or_default();
    let function = |api: usize| TraceFunction {
        name: report.names.short(api).to_owned(),
        library: report.names.object(analysis.apis[api].object).to_owned(),
    };
    let base_ns = start.monotonic_ns;
    let told = narration(&report.loaded.images, analysis).unwrap_or_default().calls;
    let mut syscalls: Vec<Vec<TraceSyscall>> = vec![Vec::new(); analysis.threads.len()];
    for call in told {
        if let Some(own) = call.thread.and_then(|thread| syscalls.get_mut(thread)) {
            let start_ns = base_ns + call.at_ns.0;
            own.push(TraceSyscall {
                end_ns: call.ns.map(|ns| start_ns + ns.0),
                start_ns,
                call: call.call,
                result: call.result,
            });
        }
    }
    let functions = (0..analysis.apis.len()).map(function).collect();
    let mut stacks = TraceStacks::new(report, functions);
    let processes = analysis.processes.iter().enumerate().map(|(number, row)| {
        let lanes = timeline.lanes.iter().filter(|lane| lane.process == number);
        TraceProcess {
            pid: row.pid,
            name: row.program.clone(),
            command: row.command.clone(),
            start_ns: base_ns + row.start_ns.0,
            end_ns: base_ns + row.start_ns.0 + row.wall_ns.0,
            threads: lanes
                .map(|lane| TraceThread {
                    syscalls: syscalls[lane.thread].clone(),
                    ..thread(report, timeline, lane, base_ns, &mut stacks)
                })
                .collect(),
        }
    });
    let processes = processes.collect();
    let title = analysis.processes.first().map_or_else(String::new, |row| row.program.clone());
    Trace {
        title,
        // Of the moment when the monotonic clock was 0.
        realtime_ns: start.realtime_ns.saturating_sub(base_ns),
        functions: stacks.functions,
        stacks: stacks.stacks,
        sample_hz: analysis.on_cpu.sample_hz,
        processes,
    }
}

fn thread(
    report: &Report,
    timeline: &Timeline,
    lane: &Lane,
    base_ns: u64,
    stacks: &mut TraceStacks<'_>,
) -> TraceThread {
    let row = &report.analysis.threads[lane.thread];
    let call = |call: &TimedCall| TraceCall {
        function: call.api,
        start_ns: base_ns + call.start_ns.0,
        end_ns: base_ns + call.start_ns.0 + call.ns.0,
        depth: call.depth,
        is_open: call.is_open,
    };
    let waits = lane.blocked.iter().map(|span| TraceWait {
        what: match span.cause {
            SpanCause::Threads => "waits for threads",
            SpanCause::File => "waits for a file",
            SpanCause::Connection => "waits for a connection",
            SpanCause::Time => "sleeps",
            SpanCause::Process => "waits for a process",
            SpanCause::Recording => "waits for chase",
            SpanCause::Other => "waits",
        }
        .to_owned(),
        start_ns: base_ns + span.start_ns.0,
        woken_ns: base_ns + span.start_ns.0 + span.ns.0.saturating_sub(span.ready_ns.0),
        end_ns: base_ns + span.start_ns.0 + span.ns.0,
        waker: span.waker.and_then(|waker| place(timeline, waker)),
    });
    let sample = |found: &LaneSample| TraceSample {
        at_ns: base_ns + found.sample.at_ns.0,
        stack: stacks.number(lane.process, found),
        stands_for: found.sample.stands_for,
        is_in_kernel: found.sample.is_in_kernel,
    };
    let mark = |mark: &chase_analyzer::Mark| {
        (base_ns + mark.at_ns.0, timeline.marks[mark.name as usize].clone())
    };
    TraceThread {
        tid: row.tid,
        name: row.name.clone(),
        is_main: row.thread == 0,
        start_ns: base_ns + lane.start_ns.0,
        end_ns: base_ns + lane.end_ns.0,
        calls: lane.calls.iter().map(call).collect(),
        waits: waits.collect(),
        syscalls: Vec::new(),
        samples: lane.samples.iter().map(sample).collect(),
        marks: lane.marks.iter().map(mark).collect(),
    }
}

/// Process and thread of a lane, as they are numbered in a trace.
fn place(timeline: &Timeline, lane: usize) -> Option<(usize, usize)> {
    let process = timeline.lanes.get(lane)?.process;
    let before = timeline.lanes[..lane].iter().filter(|other| other.process == process).count();
    Some((process, before))
}
