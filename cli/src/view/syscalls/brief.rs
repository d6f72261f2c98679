//! What the summary says of system calls.

use chase_analyzer::{Ns, OfApi, SyscallRow, SyscallsState, Totals};

use super::super::affected::affected;
use super::super::{more, wrap};
use super::{Part, Syscalls, is_there, nobody, tables};
use crate::args::{ApiFilter, LibFilter, ThreadFilter};
use crate::machine::Rows;
use crate::report::{Report, fraction};
use crate::terminal::{Align, Cell, Look, Table, Terminal, count, elapsed, percent, plural};

/// System calls named in a row.
const NAMED: usize = 4;

/// All system calls in a line, or in several where there is no room.
pub(in crate::view) fn headline(report: &Report, terminal: Terminal) -> String {
    let text = in_words(report);
    let pieces = text.split_inclusive([',', ';']).map(str::trim_start);
    wrap(pieces, 0, 2, terminal.width.unwrap_or(usize::MAX))
}

fn in_words(report: &Report) -> String {
    let syscalls = &report.analysis.syscalls;
    let totals = &syscalls.totals;
    let errors = match totals.errors {
        0 => String::new(),
        errors => format!(", {}", plural(errors, "error")),
    };
    let cost = match report.analysis.totals.lifetime_ns.0 {
        // Processes without a recording have no known threads.
        0 => elapsed(syscalls.tracing_cost_ns.0),
        _ => overhead_of(syscalls.tracing_cost_ns, &report.analysis.totals),
    };
    let own = match syscalls.own.calls {
        0 => String::new(),
        own => format!(" (not counted: {} of chase's own)", count(own)),
    };
    format!(
        "{}, {} ({} on the CPU){errors}; watching them cost about {cost}{own}",
        plural(totals.calls, "system call"),
        elapsed(totals.total_ns.0),
        elapsed(totals.cpu_ns.0),
    )
}

/// The section of the summary: the functions whose system calls took longest, and which they were.
pub(in crate::view) fn brief(report: &Report, terminal: Terminal, top: usize) -> String {
    if !is_there(report) {
        return String::new();
    }
    let mut table = Table::new([
        ("System calls of", Align::Name),
        ("Library", Align::Name),
        ("calls", Align::Number),
        ("time", Align::Number),
        ("system calls", Align::Text),
    ])
    .may_drop(["Library", "calls"]);
    let by_function = by_function(&report.analysis.syscalls.by_api);
    for rows in by_function.iter().take(top) {
        let of = &rows[0].of;
        let (name, library) = match of.api {
            Some(api) => (report.names.short(api as usize), &*of.library),
            None => (nobody(&report.analysis, of.is_recorded), ""),
        };
        table.row([
            name.into(),
            Cell::new(library, Look::Faint),
            if of.api.is_some() { count(of.api_calls) } else { String::new() }.into(),
            elapsed(total_ns(rows)).into(),
            named(rows).into(),
        ]);
    }
    let more = more(report, by_function.len(), top, "syscalls");
    format!("\n{}\n\n{}{more}", headline(report, terminal), table.render(terminal))
}

/// The rows of each function, costliest function first.
fn by_function(rows: &[SyscallRow<OfApi>]) -> Vec<Vec<&SyscallRow<OfApi>>> {
    let mut rows: Vec<_> = rows.iter().filter(|row| row.measures.calls > 0).collect();
    // Stable: within a function, the costliest stays first.
    // Those of no function are of two kinds: outside of calls, or of what is not recorded.
    let key = |row: &&SyscallRow<OfApi>| (row.of.api, row.of.is_recorded);
    rows.sort_by_key(key);
    let mut functions: Vec<Vec<_>> =
        rows.chunk_by(|a, b| key(a) == key(b)).map(<[_]>::to_vec).collect();
    functions.sort_by_key(|rows| std::cmp::Reverse(total_ns(rows)));
    functions
}

fn total_ns(rows: &[&SyscallRow<OfApi>]) -> u64 {
    rows.iter().fold(0, |sum, row| sum.saturating_add(row.measures.total_ns.0))
}

/// `read 18.2k, lseek 3, …`: what took longest first, however rare.
fn named(rows: &[&SyscallRow<OfApi>]) -> String {
    let mut rows = rows.to_vec();
    rows.sort_by_key(|row| std::cmp::Reverse((row.measures.total_ns, row.measures.calls)));
    let name = |row: &&SyscallRow<OfApi>| format!("{} {}", row.syscall, count(row.measures.calls));
    let mut names: Vec<String> = rows.iter().take(NAMED).map(name).collect();
    if rows.len() > NAMED {
        names.push(format!("{} more", rows.len() - NAMED));
    }
    format!("→ {}", names.join(", "))
}

/// The table of the summary for programs, where there are system calls.
pub(in crate::view) fn for_summary(report: &Report, top: usize) -> anyhow::Result<Option<Rows>> {
    if !is_there(report) {
        return Ok(None);
    }
    let (lib, api, thread) =
        (&LibFilter::default(), &ApiFilter::default(), &ThreadFilter::default());
    let part = Part { analysis: &report.analysis, names: &report.names };
    tables::by_api(&Syscalls { lib, api, thread, by: None }, &part, top).map(Some)
}

/// What was not seen of system calls, in words.
pub(in crate::view) fn not_seen(report: &Report) -> Vec<String> {
    let not_seen = &report.analysis.not_seen.syscalls;
    let pid = |process: usize| report.analysis.processes.get(process).map_or(0, |row| row.pid);
    let counts = [
        (not_seen.lost_calls, "system call", "for which the companion had no room"),
        (
            not_seen.lost_waits,
            "time off the CPU",
            "for which the companion had no room, so that waits are told by name",
        ),
        (
            not_seen.lost_causes,
            "wait",
            "for whose cause the companion had no room: what it was for, and who ended it, is in no table",
        ),
        (not_seen.lost_processes, "process", "whose system calls the companion had no room for"),
        (not_seen.lost_threads, "thread", "whose system calls the companion had no room for"),
        (
            not_seen.dropped_images,
            "program",
            "of another user, or set-id: its system calls may not be watched, and where it may not write to the directory of the recordings, neither it nor what it starts is recorded",
        ),
        (
            not_seen.unfinished,
            "system call",
            "that never returned, because the thread ended; counted with the time until then",
        ),
    ];
    let lost_samples = report.analysis.on_cpu.lost_samples;
    let lost_samples = (lost_samples, "sample", "of what ran, for which the companion had no room");
    let counts = counts.iter().chain([&lost_samples]);
    let mut lines: Vec<String> = counts
        .filter(|(number, ..)| *number > 0)
        .map(|&(number, what, why)| format!("{} {why}", affected(report, number, what)))
        .collect();
    if not_seen.silent_threads > 0 {
        lines.insert(
            0,
            format!(
                "{} that ran for {} and made no library call that is recorded: in no table of threads",
                plural(not_seen.silent_threads, "thread"),
                elapsed(not_seen.silent_threads_ns.0)
            ),
        );
    }
    for stopped in &not_seen.stopped {
        let why = match stopped.state {
            SyscallsState::Stopped => {
                "the companion stopped before it ended, or could write no more: is the disk full? \
                 Free space there and record again"
            }
            _ => "it runs, or the companion was killed",
        };
        lines.push(format!(
            "system calls of process {} after {}: {why}; its waits are told by name",
            pid(stopped.process),
            elapsed(stopped.after_ns.0)
        ));
    }
    if let [first, others @ ..] = &*not_seen.processes_without {
        // As the first of them noted it.
        let image = report.loaded.images.get(*first);
        let noted = image.and_then(|image| image.recording.meta_value("syscalls"));
        let noted = noted.filter(|why| why != "on");
        let why = noted.map_or_else(String::new, |why| format!(" ({why})"));
        lines.push(match others.len() {
            0 => format!(
                "system calls of process {}, which was not watched{why}: its waits are told by name",
                pid(*first)
            ),
            more => format!(
                "system calls of {} processes, which were not watched{why}: their waits are told by name",
                more + 1
            ),
        });
    }
    lines
}

/// `cost` as a part of what the threads would have taken without it.
fn overhead_of(cost: Ns, totals: &Totals) -> String {
    percent(fraction(cost, totals.lifetime_ns.as_f64() - cost.as_f64()))
}
