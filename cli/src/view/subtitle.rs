//! Of what run a picture is.

use super::{approximate, processes};
use crate::report::Report;
use crate::terminal::{count, elapsed};

pub(super) fn subtitle(report: &Report) -> String {
    let analysis = &report.analysis;
    let first = analysis.processes.first().map_or("", |process| &*process.program);
    let processes = match &*analysis.processes {
        [_] => String::new(),
        several => format!("{}, ", processes::number(several)),
    };
    let estimated = analysis.libraries.iter().any(|row| row.measures.estimated);
    let estimates = if estimated { ", times of hot functions are estimates" } else { "" };
    format!(
        "{first}: {processes}{} wall, {} threads, {} library calls, {}{estimates}",
        elapsed(analysis.wall_ns.0),
        analysis.totals.threads,
        approximate(analysis.totals.calls_estimated, count(analysis.totals.calls)),
        processes::overhead(analysis),
    )
}
