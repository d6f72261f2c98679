//! A run's timeline as other tools want it.

use chase_analyzer::{Lane, SpanCause, TimedCall, Timeline, narration};
use chase_export::{
    Trace, TraceCall, TraceFunction, TraceProcess, TraceSyscall, TraceThread, TraceWait,
};

use crate::report::Report;

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
                    ..thread(report, timeline, lane, base_ns)
                })
                .collect(),
        }
    });
    let title = analysis.processes.first().map_or_else(String::new, |row| row.program.clone());
    Trace {
        title,
        // Of the moment when the monotonic clock was 0.
        realtime_ns: start.realtime_ns.saturating_sub(base_ns),
        functions: (0..analysis.apis.len()).map(function).collect(),
        processes: processes.collect(),
    }
}

fn thread(report: &Report, timeline: &Timeline, lane: &Lane, base_ns: u64) -> TraceThread {
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
            SpanCause::Other => "waits",
        }
        .to_owned(),
        start_ns: base_ns + span.start_ns.0,
        woken_ns: base_ns + span.start_ns.0 + span.ns.0.saturating_sub(span.ready_ns.0),
        end_ns: base_ns + span.start_ns.0 + span.ns.0,
        waker: span.waker.and_then(|waker| place(timeline, waker)),
    });
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
        marks: lane.marks.iter().map(mark).collect(),
    }
}

/// Process and thread of a lane, as they are numbered in a trace.
fn place(timeline: &Timeline, lane: usize) -> Option<(usize, usize)> {
    let process = timeline.lanes.get(lane)?.process;
    let before = timeline.lanes[..lane].iter().filter(|other| other.process == process).count();
    Some((process, before))
}
