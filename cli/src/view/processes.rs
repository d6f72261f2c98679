//! The processes of a run, how each ended.

use std::cmp::Reverse;

use chase_analyzer::{Analysis, Ending, ProcessRow, Totals};
use unicode_width::UnicodeWidthStr;

use super::approximate;
use crate::report::Report;
use crate::terminal::{
    Align, Look, Table, Terminal, clean, count, elapsed, moment, percent, plural,
};

/// Headings of columns, and what they mean.
pub(super) const LIBRARY_SUM: (&str, &str) = (
    "Σ library",
    "time in library calls, added up over the threads of the process: it can exceed wall",
);
pub(super) const ENDED: (&str, &str) = (
    "ended",
    "exec: went on as the program in the next row of its PID; _exit: without exit handlers",
);

/// What chase cost: what the processes took longer, as processor time and as a part of what they would have taken without
/// it; and what the companion took beside them.
pub(super) struct Cost {
    pub(super) inside: String,
    pub(super) companion: Option<String>,
}

/// The least and the most that the overhead can be are both told where it is such a part of the time without, and the one is so
/// many times the other.
const MUCH: f64 = 0.2;
const DIFFERENT: f64 = 1.25;

impl Cost {
    pub(super) fn new(analysis: &Analysis) -> Self {
        let overhead = &analysis.overhead;
        let inside_ns = elapsed(overhead.inside_ns().0);
        let (least, most) = (overhead.least_share(), overhead.share());
        let inside = match overhead.without_ns.0 {
            0 => inside_ns,
            _ if most > MUCH && most > DIFFERENT * least => {
                format!("{} to {} ({inside_ns} at most)", percent(least), percent(most))
            }
            _ => format!("{} ({inside_ns})", percent(most)),
        };
        let companion_ns = Some(overhead.companion_ns.0).filter(|ns| *ns > 0);
        Self { inside, companion: companion_ns.map(elapsed) }
    }
}

/// The same, as part of a line.
pub(super) fn overhead(analysis: &Analysis) -> String {
    let cost = Cost::new(analysis);
    let beside = cost.companion.map(|time| format!(", companion {time} beside it"));
    // What a call costs is measured at the start, where the processor has all of it at hand: samples show what it was.
    let about = if analysis.on_cpu.sample_hz == 0 { "at least about" } else { "about" };
    format!("overhead {about} {}{}", cost.inside, beside.unwrap_or_default())
}

/// `compressor  pid 4711  212 ms wall, 3 threads, …`, and how it ended.
pub(super) fn headline(analysis: &Analysis, process: &ProcessRow, terminal: Terminal) -> String {
    let about = if process.end_is_estimate { "about " } else { "" };
    let totals = &process.totals;
    let facts = format!(
        "pid {}  {about}{} wall, {}, {}, {}; {}",
        process.pid,
        elapsed(process.wall_ns.0),
        plural(totals.threads as u64, "thread"),
        calls(totals, process.only_counts),
        overhead(analysis),
        ending(process.ending),
    );
    line(process.name(), &facts, terminal)
}

/// `18.0k library calls, only counted`.
fn calls(totals: &Totals, only_counted: bool) -> String {
    let calls = approximate(totals.calls_estimated, plural(totals.calls, "library call"));
    if only_counted { format!("{calls} (only counted)") } else { calls }
}

/// The name of a program and what is to be said of it, in lines that fit the terminal.
fn line(program: &str, facts: &str, terminal: Terminal) -> String {
    let name = clean(program);
    let width = terminal.width.unwrap_or(usize::MAX);
    // A number stays with its unit.
    let facts = facts.split_inclusive([',', ';']).map(str::trim_start);
    let facts = super::wrap(facts, name.width() + 2, 2, width);
    format!("{}  {facts}\n", terminal.paint(Look::Strong, &name))
}

/// A line for a run of several processes.
pub(super) fn run_headline(report: &Report, terminal: Terminal) -> String {
    let analysis = &report.analysis;
    let first = analysis.processes.first().map_or("", |process| &*process.program);
    let facts = format!(
        "{}  {} wall, {}, {}, {}",
        number(&analysis.processes),
        elapsed(analysis.wall_ns.0),
        threads(analysis),
        calls(&analysis.totals, analysis.only_counts()),
        overhead(analysis),
    );
    line(first, &facts, terminal)
}

/// That line, and a table of its processes.
pub(super) fn table(report: &Report, terminal: Terminal, top: usize) -> String {
    let analysis = &report.analysis;
    let mut out = run_headline(report, terminal) + "\n";
    let mut table = Table::new([
        ("PID", Align::Number),
        ("parent", Align::Number),
        ("Process", Align::Name),
        ("start", Align::Number),
        ("wall", Align::Number),
        ("threads", Align::Number),
        (LIBRARY_SUM.0, Align::Number),
        ("calls", Align::Number),
        (ENDED.0, Align::Text),
    ])
    .may_drop(["parent", "start", LIBRARY_SUM.0, "threads"]);
    for process in costliest(&analysis.processes, top) {
        let totals = &process.totals;
        table.row([
            process.pid.to_string().into(),
            process.parent_pid.to_string().into(),
            process.name().into(),
            moment(process.start_ns.0).into(),
            elapsed(process.wall_ns.0).into(),
            count(totals.threads as u64).into(),
            elapsed(totals.library_ns.0).into(),
            approximate(totals.calls_estimated, count(totals.calls)).into(),
            brief_ending(process.ending).into(),
        ]);
    }
    out.push_str(&table.render(terminal));
    out.push_str(&match analysis.processes.len().saturating_sub(top) {
        0 => String::new(),
        more => format!("… and {more} more that did less: --top 0 shows all\n"),
    });
    out
}

/// How often a process went on: as another program, and after chase had left it, recorded once more. It has a row for each, with a
/// thread that is the same one.
fn went_on(rows: &[ProcessRow]) -> (u64, u64) {
    let (mut execs, mut again) = (0, 0);
    for row in rows {
        let before = row.parent.and_then(|row| rows.get(row));
        match before.filter(|before| before.pid == row.pid) {
            Some(before) if before.ending == Ending::Detached => again += 1,
            Some(_) => execs += 1,
            None => {}
        }
    }
    (execs, again)
}

/// `5 threads`.
pub(super) fn threads(analysis: &Analysis) -> String {
    plural(analysis.number_of_threads() as u64, "thread")
}

/// `4 processes (3 execs)`.
pub(super) fn number(rows: &[ProcessRow]) -> String {
    let (execs, again) = went_on(rows);
    let processes = match rows.len() as u64 - execs - again {
        1 => "1 process".to_owned(),
        more => format!("{} processes", count(more)),
    };
    let mut how = Vec::new();
    if execs > 0 {
        how.push(plural(execs, "exec"));
    }
    match again {
        0 => {}
        1 => how.push("recorded once more after a pause".to_owned()),
        more => how.push(format!("recorded {} more times, after pauses", count(more))),
    }
    if how.is_empty() { processes } else { format!("{processes} ({})", how.join("; ")) }
}

/// The `top` processes whose threads did most, in order of their start.
pub(super) fn costliest(processes: &[ProcessRow], top: usize) -> impl Iterator<Item = &ProcessRow> {
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

pub(super) fn ending(ending: Ending) -> String {
    match ending {
        Ending::Exit { status } => format!("exit status {status}"),
        Ending::ImmediateExit { status } => format!("exit status {status}, by _exit"),
        Ending::Exec => "went on as another program (exec)".to_owned(),
        Ending::Abort => "aborted".to_owned(),
        Ending::Detached => "went on, without chase".to_owned(),
        Ending::Running => "still running".to_owned(),
        Ending::Killed { signal: Some(signal) } => format!("killed by {}", signal_name(signal)),
        Ending::Killed { signal: None } => {
            "its end was not seen: killed, or it ended by a system call of its own".to_owned()
        }
        Ending::Unknown => "only its system calls were seen".to_owned(),
    }
}

fn signal_name(signal: i32) -> String {
    let name = signal_hook::low_level::signal_name(signal);
    name.map_or_else(|| format!("signal {signal}"), str::to_owned)
}

/// The same for a column of a table.
pub(super) fn brief_ending(ending: Ending) -> String {
    match ending {
        Ending::Exit { status } => format!("exit {status}"),
        Ending::ImmediateExit { status } => format!("_exit {status}"),
        Ending::Exec => "exec".to_owned(),
        Ending::Abort => "aborted".to_owned(),
        Ending::Detached => "went on".to_owned(),
        Ending::Running => "running".to_owned(),
        Ending::Killed { signal: Some(signal) } => signal_name(signal),
        Ending::Killed { signal: None } => "not seen".to_owned(),
        Ending::Unknown => "unknown".to_owned(),
    }
}

/// What was run, for below the heading of a picture.
pub(super) fn subtitle(report: &Report) -> String {
    let analysis = &report.analysis;
    let first = analysis.processes.first().map_or("", |process| &*process.program);
    let processes = match &*analysis.processes {
        [_] => String::new(),
        several => format!("{}, ", number(several)),
    };
    let estimated = analysis.libraries.iter().any(|row| row.measures.estimated);
    let estimates = if estimated { ", times of hot functions are estimates" } else { "" };
    format!(
        "{first}: {processes}{} wall, {}, {} library calls, {}{estimates}",
        elapsed(analysis.wall_ns.0),
        threads(analysis),
        approximate(analysis.totals.calls_estimated, count(analysis.totals.calls)),
        overhead(analysis),
    )
}
