//! What is said above the tables.

use chase_analyzer::{WaitSource, blocked};

use super::state::{busy, state};
use super::tables::{Figures, percent_of_one, rate, threads};
use super::watch::Look;
use crate::terminal::{clean, count, elapsed, plural};

/// The run in one line: what it is, and whether it goes on.
pub(super) fn run(look: &Look) -> String {
    let analysis = &look.all.analysis;
    let Some(root) = analysis.processes.first() else { return "nothing recorded".to_owned() };
    let time = elapsed(analysis.wall_ns.0);
    let state = match look.is_running {
        true => format!("runs for {time}"),
        false => match analysis.processes.len() {
            1 => format!("{} after {time}", state(root)),
            _ => format!("all ended after {time}"),
        },
    };
    let mut parts = vec![format!("{}  pid {}  {state}", root.program, root.pid)];
    let processes = analysis.processes.len() as u64;
    parts.extend((processes > 1).then(|| plural(processes, "process")));
    parts.push(plural(analysis.number_of_threads() as u64, "thread"));
    clean(&parts.join("  ")).into_owned()
}

/// Sums of what is shown.
pub(super) fn sums(figures: Figures, processors: u64) -> String {
    let totals = &figures.analysis.totals;
    let on_cpu = &figures.analysis.on_cpu;
    // Of what was watched, the scheduler knows.
    let (busy, word) = match (figures.report.analysis.on_cpu.samples, wait_source(figures)) {
        // Waits that are told by name are not all.
        (0, WaitSource::Name) => (busy(totals), "busy ≤"),
        (0, _) => (busy(totals), "busy "),
        (..) => (on_cpu.on_cpu_ns, "cpu "),
    };
    let found = blocked(figures.analysis);
    let idle = found.idle_threads();
    let idle = if idle > 0 { format!(", {idle} idle") } else { String::new() };
    match figures.seconds {
        Some(seconds) => format!(
            "Last {seconds:.1} s: {word}{} ({})  {} waiting{idle}  {} calls/s",
            percent_of_one(busy.seconds() / seconds),
            plural(processors, "processor"),
            threads(found.wait_ns.seconds() / seconds),
            rate(totals.calls as f64 / seconds),
        ),
        None => format!(
            "In all: {word}{}  waiting {}{idle}  {} calls",
            elapsed(busy.0),
            elapsed(found.wait_ns.0),
            count(totals.calls),
        ),
    }
}

fn wait_source(figures: Figures) -> WaitSource {
    figures.report.analysis.wait_source()
}
