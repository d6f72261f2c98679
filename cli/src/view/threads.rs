//! Each thread: who started it where, how long it lived, what it did.

use std::cmp::Reverse;

use chase_analyzer::{CodeAddress, ThreadRow};
use serde_json::Value;

use super::{Show, calls, left_out, legend, share};
use crate::args::{ThreadFilter, matches};
use crate::machine::{self, MEASURES, Rows};
use crate::places::{AddressKind, Place};
use crate::report::Report;
use crate::terminal::{Align, Look, Table, Terminal, clean, count, elapsed, moment};

pub(super) struct Threads<'a> {
    pub(super) thread: &'a ThreadFilter,
}

/// The threads that the filter lets pass, the longest first.
pub(super) fn rows<'r>(report: &'r Report, filter: &ThreadFilter) -> Vec<&'r ThreadRow> {
    let wanted = |row: &&ThreadRow| matches(&filter.threads, &[&row.tid.to_string(), &row.name]);
    let mut rows: Vec<&ThreadRow> = report.analysis.threads.iter().filter(wanted).collect();
    rows.sort_by_key(|row| (Reverse(row.lifetime_ns), row.process, row.thread));
    rows
}

impl Show for Threads<'_> {
    const NAME: &'static str = "threads";

    fn text(&self, report: &Report, terminal: Terminal, top: usize) -> anyhow::Result<String> {
        let rows = rows(report, self.thread);
        let mut table = Table::new([
            ("PID", Align::Number),
            ("TID", Align::Number),
            ("Thread", Align::Name),
            ("Start routine", Align::Name),
            ("Created in", Align::Name),
            ("start", Align::Number),
            ("lifetime", Align::Number),
            ("application", Align::Number),
            ("library", Align::Number),
            ("wait by name", Align::Number),
            ("calls", Align::Number),
        ])
        .may_drop(["PID", "start", "application", "Created in", "library"]);
        for row in rows.iter().take(top) {
            let pid = report.analysis.processes.get(row.process).map_or(0, |process| process.pid);
            let about = if row.end_is_estimate { "≥ " } else { "" };
            table.row([
                pid.to_string().into(),
                row.tid.to_string().into(),
                name(row).into(),
                routine(report, row).into(),
                short(report, row, row.creation_site.as_ref(), AddressKind::ReturnAddress).into(),
                moment(row.start_ns.0).into(),
                format!("{about}{}", elapsed(row.lifetime_ns.0)).into(),
                elapsed(row.application_ns.0).into(),
                elapsed(row.measures.self_ns.0).into(),
                elapsed(row.measures.wait_ns.0).into(),
                count(row.measures.calls).into(),
            ]);
        }
        let mut out = table.render(terminal);
        out.push_str(&left_out(rows.len(), top, "threads"));
        out.push_str(&missing(report, terminal));
        out.push_str(&legend(
            terminal,
            &[
                ("start", "since the start of the run"),
                ("application", "lifetime less library calls and less the cost of recording"),
                ("library", "in library calls"),
                (
                    "wait by name",
                    "the part of it in functions known to wait: a guess by name, not measured",
                ),
                ("≥", "the end was not seen"),
            ],
        ));
        Ok(out)
    }

    fn tables(&self, report: &Report, top: usize) -> anyhow::Result<Vec<Rows>> {
        let row = |row: &ThreadRow| {
            let place = |address: &Option<CodeAddress>, kind| match address {
                Some(address) => {
                    serde_json::to_value(report.places.find(report, row.process, address, kind))
                }
                None => Ok(Value::Null),
            };
            let start = place(&row.start_routine, AddressKind::Function)?;
            let site = place(&row.creation_site, AddressKind::ReturnAddress)?;
            let pid = report.analysis.processes.get(row.process).map(|process| process.pid);
            machine::row(
                row,
                [("pid", pid.into()), ("start_routine", start), ("creation_site", site)],
            )
        };
        let rows = rows(report, self.thread).into_iter().take(top).map(row);
        let columns = [
            "pid",
            "tid",
            "thread",
            "name",
            "start_ns",
            "end_ns",
            "lifetime_ns",
            "end_is_estimate",
            "application_ns",
            "own_cost_ns",
            "overlap_ns",
            "lost_calls",
            "creator",
            "start_routine.function",
            "start_routine.file",
            "start_routine.line",
            "start_routine.object",
            "start_routine.svma",
            "creation_site.function",
            "creation_site.file",
            "creation_site.line",
            "creation_site.object",
            "creation_site.svma",
        ];
        let columns = [&columns[..], &MEASURES].concat();
        Ok(vec![Rows { name: "threads", columns, rows: rows.collect::<Result<_, _>>()? }])
    }
}

/// The table of the summary.
pub(super) fn brief(report: &Report, top: usize) -> Table {
    let mut table = Table::new([
        ("TID", Align::Number),
        ("Thread", Align::Name),
        ("Start routine", Align::Name),
        ("lifetime", Align::Number),
        ("application", Align::Number),
        ("library", Align::Number),
        ("wait by name", Align::Number),
        ("calls", Align::Number),
    ])
    .may_drop(["application", "Start routine", "wait by name"]);
    for row in rows(report, &ThreadFilter::default()).into_iter().take(top) {
        table.row([
            row.tid.to_string().into(),
            name(row).into(),
            routine(report, row).into(),
            elapsed(row.lifetime_ns.0).into(),
            share(report, row.application_ns).into(),
            share(report, row.measures.self_ns).into(),
            share(report, row.measures.wait_ns).into(),
            calls(&row.measures).into(),
        ]);
    }
    table
}

/// A thread without a name has its number.
fn name(row: &ThreadRow) -> String {
    if row.name.is_empty() { format!("thread {}", row.thread) } else { row.name.clone() }
}

fn routine(report: &Report, row: &ThreadRow) -> String {
    short(report, row, row.start_routine.as_ref(), AddressKind::Function)
}

fn short(
    report: &Report,
    row: &ThreadRow,
    address: Option<&CodeAddress>,
    kind: AddressKind,
) -> String {
    let Some(address) = address else { return String::new() };
    let place: Place = report.places.find(report, row.process, address, kind);
    place.short(address.object.map_or("", |number| report.names.object(number)))
}

/// Objects whose source lines could not be found.
fn missing(report: &Report, terminal: Terminal) -> String {
    let missing = report.places.missing();
    if missing.is_empty() {
        return String::new();
    }
    let heading = terminal.paint(Look::Warning, "No source lines");
    let lines = missing.iter().map(|why| format!("  {}\n", clean(why)));
    let hint = "  --debug-dir DIR says where there is debug information\n";
    format!("\n{heading}\n{}{hint}", lines.collect::<String>())
}
