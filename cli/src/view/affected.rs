//! How much is missing, beside what is there.

use crate::report::Report;
use crate::terminal::{percent, plural};

/// How many of a kind, and what part that is of those that were recorded, where these are counted.
pub(super) fn affected(report: &Report, number: u64, what: &str) -> String {
    let analysis = &report.analysis;
    let recorded = match what {
        "call" => analysis.totals.calls,
        "system call" => analysis.syscalls.totals.calls,
        "sample" => analysis.on_cpu.samples,
        "process" => analysis.processes.len() as u64,
        _ => 0,
    };
    let number_of = plural(number, what);
    match recorded {
        0 => number_of,
        all => format!("{number_of} ({} of those recorded)", percent(number as f64 / all as f64)),
    }
}
