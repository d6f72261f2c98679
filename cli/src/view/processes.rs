//! The processes of a run, how each ended, and what was not seen of them.

use std::cmp::Reverse;

use chase_analyzer::{Ending, ProcessRow, Totals};

use crate::report::{Report, file_name, fraction};
use crate::terminal::{Align, Look, Table, Terminal, clean, count, elapsed, percent};

/// From this fraction of the threads' lifetime on, times that contradict each other are mentioned.
const NOTABLE_OVERLAP: f64 = 0.01;

/// What was spent on being recorded, in words.
pub(super) fn overhead(totals: &Totals) -> String {
    let without = totals.lifetime_ns.as_f64() - totals.own_cost_ns.as_f64();
    percent(fraction(totals.own_cost_ns, without))
}

/// `compressor  pid 4711  212 ms wall, 3 threads, …`, and how it ended.
pub(super) fn headline(process: &ProcessRow, terminal: Terminal) -> String {
    let name = terminal.paint(Look::Strong, &clean(file_name(&process.executable)));
    let about = if process.end_is_estimate { "about " } else { "" };
    let totals = &process.totals;
    format!(
        "{name}  pid {}  {about}{} wall, {}, {}, overhead about {}; {}\n",
        process.pid,
        elapsed(process.wall_ns.0),
        plural(totals.threads as u64, "thread"),
        plural(totals.calls, "library call"),
        overhead(totals),
        ending(process.ending),
    )
}

/// A line for the run, and a table of its processes.
pub(super) fn table(report: &Report, terminal: Terminal, top: usize) -> String {
    let analysis = &report.analysis;
    let first = analysis.processes.first().map_or("", |process| file_name(&process.executable));
    let mut out = format!(
        "{}  {} processes  {} wall, {}, {}, overhead about {}\n\n",
        terminal.paint(Look::Strong, &clean(first)),
        analysis.processes.len(),
        elapsed(analysis.wall_ns.0),
        plural(analysis.totals.threads as u64, "thread"),
        plural(analysis.totals.calls, "library call"),
        overhead(&analysis.totals),
    );
    let mut table = Table::new([
        ("PID", Align::Number),
        ("parent", Align::Number),
        ("Process", Align::Name),
        ("start", Align::Number),
        ("wall", Align::Number),
        ("threads", Align::Number),
        ("library", Align::Number),
        ("calls", Align::Number),
        ("ended", Align::Text),
    ])
    .may_drop(["parent", "start", "library", "threads"]);
    for process in costliest(&analysis.processes, top) {
        let totals = &process.totals;
        table.row([
            process.pid.to_string().into(),
            process.parent_pid.to_string().into(),
            file_name(&process.executable).into(),
            elapsed(process.start_ns.0).into(),
            elapsed(process.wall_ns.0).into(),
            count(totals.threads as u64).into(),
            elapsed(totals.library_ns.0).into(),
            count(totals.calls).into(),
            ending(process.ending).into(),
        ]);
    }
    out.push_str(&table.render(terminal));
    out.push_str(&super::left_out(analysis.processes.len(), top, "processes"));
    out
}

/// The `top` processes whose threads did most, in order of their start.
fn costliest(processes: &[ProcessRow], top: usize) -> impl Iterator<Item = &ProcessRow> {
    let cost = |at: &usize| {
        let totals = &processes[*at].totals;
        Reverse((totals.application_ns.0.saturating_add(totals.library_ns.0), totals.calls))
    };
    let mut by_cost: Vec<usize> = (0..processes.len()).collect();
    by_cost.sort_by_key(cost);
    by_cost.truncate(top);
    by_cost.sort_unstable();
    by_cost.into_iter().map(|at| &processes[at])
}

fn ending(ending: Ending) -> String {
    match ending {
        Ending::Exit { status } => format!("exit status {status}"),
        Ending::ImmediateExit { status } => format!("exit status {status}, by _exit"),
        Ending::Exec => "went on as another program (exec)".to_owned(),
        Ending::Abort => "aborted".to_owned(),
        Ending::Running => "still running".to_owned(),
        Ending::Killed => "killed: no end was seen".to_owned(),
    }
}

/// What the figures do not contain; empty if they contain everything.
pub(super) fn not_seen(report: &Report) -> Vec<String> {
    let not_seen = &report.analysis.not_seen;
    let counts = [
        (not_seen.calls_without_thread, "call", "by threads that were starting or ending"),
        (not_seen.calls_without_space, "call", "for which the recording had no room"),
        (not_seen.calls_too_deep, "call", "nested too deep to be timed"),
        (not_seen.lost_calls, "call", "that threads made unrecorded"),
        (not_seen.threads, "thread", "without a record"),
        (not_seen.slots_without_stub, "import", "for which no stub was left"),
        (not_seen.objects, "object", "whose tables could not be read"),
        (not_seen.late_loads, "dlopen call", "whose libraries were hooked a little later"),
        (not_seen.contexts_under_root, "context", "whose callers were not kept"),
    ];
    let mut lines: Vec<String> = counts
        .iter()
        .filter(|(number, ..)| *number > 0)
        .map(|&(number, what, why)| format!("{} {why}", plural(number, what)))
        .collect();
    for skipped in &not_seen.skipped {
        lines.push(format!("{} left alone: {}", plural(skipped.imports, "import"), skipped.reason));
    }
    for stopped in &not_seen.stopped {
        let pid = report.analysis.processes.get(stopped.process).map_or(0, |process| process.pid);
        let errno = match stopped.errno {
            0 => String::new(),
            errno => format!(" ({})", std::io::Error::from_raw_os_error(errno as i32)),
        };
        let after = elapsed(stopped.after_ns.0);
        lines.push(format!("process {pid} after {after}: {}{errno}", stopped.reason));
    }
    for part in &not_seen.unreadable {
        lines.push(format!("part of {}: {}", part.path.display(), part.problem));
    }
    for failure in &report.loaded.failures {
        lines.push(format!("{}: {}", failure.path.display(), failure.cause));
    }
    for process in report.analysis.processes.iter().filter(|process| !process.clock_is_calibrated) {
        let pid = process.pid;
        lines.push(format!("the clock's rate in process {pid}: its times are in ticks, not in ns"));
    }
    let totals = &report.analysis.totals;
    if fraction(totals.overlap_ns, totals.lifetime_ns.as_f64()) > NOTABLE_OVERLAP {
        let (overlap, lifetime) = (elapsed(totals.overlap_ns.0), elapsed(totals.lifetime_ns.0));
        lines.push(format!(
            "contradictory times: calls exceed the threads' {lifetime} by {overlap}, so shares mislead"
        ));
    }
    lines
}

fn plural(number: u64, what: &str) -> String {
    format!("{} {what}{}", count(number), if number == 1 { "" } else { "s" })
}
