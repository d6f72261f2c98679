//! Each thread: who started it where, how long it lived, what it did.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};

use chase_analyzer::{CodeAddress, Ns, ThreadRow};
use serde_json::Value;

use super::waiting::{self, PREEMPTED};
use super::{Show, approximate, groups, left_out, legend, with_error};
use crate::args::{GroupFilter, SortArg, ThreadFilter, matches};
use crate::machine::{self, MEASURES, OFF_CPU, Rows};
use crate::places::AddressKind;
use crate::report::Report;
use crate::terminal::{Align, Look, Table, Terminal, clean, count, elapsed, moment};
use crate::thread_functions;

pub(super) struct Threads<'a> {
    pub(super) thread: &'a ThreadFilter,
    pub(super) group: &'a GroupFilter,
    pub(super) sort: SortArg,
}

impl Threads<'_> {
    /// The threads that both filters let pass, the longest first.
    fn rows<'r>(&self, report: &'r Report) -> anyhow::Result<Vec<&'r ThreadRow>> {
        let mut rows = rows(report, self.thread);
        if !self.group.groups.is_empty() {
            let chosen = groups::chosen(report, self.group)?;
            let of_thread = &report.groups().of_thread;
            let threads = report.analysis.threads.iter().zip(of_thread);
            let wanted: HashSet<(usize, u32)> = threads
                .filter(|&(_, &group)| chosen[group as usize])
                .map(|(row, _)| (row.process, row.thread))
                .collect();
            rows.retain(|row| wanted.contains(&(row.process, row.thread)));
        }
        super::sorting::sort(&mut rows, self.sort, |row| &row.measures, |row| row.name.clone());
        Ok(rows)
    }
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
        let rows = self.rows(report)?;
        let mut out = String::new();
        if self.thread.threads.is_empty() {
            out.push_str(&groups::text(report, self.group, terminal, top)?);
            out.push('\n');
        }
        let mut table = Table::new([
            ("PID", Align::Number),
            ("TID", Align::Number),
            ("Thread", Align::Name),
            ("Function", Align::Name),
            ("Created in", Align::Name),
            ("start", Align::Number),
            ("lifetime", Align::Number),
            ("application", Align::Number),
            ("library", Align::Number),
            (waiting::heading(report), Align::Number),
            (PREEMPTED, Align::Number),
            ("calls", Align::Number),
        ])
        .only_if(waiting::is_measured(report), PREEMPTED)
        .may_drop(["PID", "start", "application", "Created in", "library"]);
        for row in rows.iter().take(top) {
            let pid = report.analysis.processes.get(row.process).map_or(0, |process| process.pid);
            let about = if row.end_is_estimate { "≥ " } else { "" };
            table.row([
                pid.to_string().into(),
                row.tid.to_string().into(),
                name(row).into(),
                function(report, row).into(),
                created_in(report, row).into(),
                moment(row.start_ns.0).into(),
                format!("{about}{}", elapsed(row.lifetime_ns.0)).into(),
                application(report, row).into(),
                with_error(&row.measures, row.measures.self_ns).into(),
                elapsed(wait_ns(row).0).into(),
                preempted_ns(row).map_or_else(String::new, |ns| elapsed(ns.0)).into(),
                approximate(row.measures.calls_estimated, count(row.measures.calls)).into(),
            ]);
        }
        out.push_str(&table.render(terminal));
        out.push_str(&left_out(rows.len(), top, "threads"));
        out.push_str(&missing(report, terminal));
        let function = "what the thread runs of the program, beyond its runtime's start routine";
        let mut terms = vec![("Function", function)];
        if self.thread.threads.is_empty() {
            terms.extend(groups::terms(report));
        }
        terms.extend([
            ("start", "since the start of the run"),
            ("application", "lifetime less library calls and less the cost of recording"),
            ("library", "in library calls"),
        ]);
        terms.extend(super::counted(report));
        terms.extend(waiting::legend_of_library(report));
        terms.push(("≥", "the end was not seen"));
        out.push_str(&legend(terminal, &terms));
        Ok(out)
    }

    fn tables(&self, report: &Report, top: usize) -> anyhow::Result<Vec<Rows>> {
        let all = report.analysis.threads.iter().zip(&report.groups().of_thread);
        let group_of: HashMap<(usize, u32), u32> =
            all.map(|(row, &group)| ((row.process, row.thread), group)).collect();
        let row = |row: &ThreadRow| {
            let group = group_of.get(&(row.process, row.thread));
            let group = group.map(|&group| &*report.groups().rows[group as usize].label);
            let place = |address: &Option<CodeAddress>, kind| match address {
                Some(address) => serde_json::to_value(report.places.find(
                    report.files(),
                    row.process,
                    address,
                    kind,
                )),
                None => Ok(Value::Null),
            };
            let start = place(&row.start_routine, AddressKind::Function)?;
            let site = report.places.creation_site(report.files(), row);
            let site = place(&site, AddressKind::ReturnAddress)?;
            let stack = row.creation.stack.iter();
            let stack: Result<Vec<_>, _> =
                stack.map(|address| place(&Some(*address), AddressKind::ReturnAddress)).collect();
            let function =
                report.places.thread_function(report.files(), row).map(thread_functions::field);
            let function = serde_json::to_value(function)?;
            let pid = report.analysis.processes.get(row.process).map(|process| process.pid);
            machine::row(
                row,
                [
                    ("pid", pid.into()),
                    ("group", group.into()),
                    ("function", function),
                    ("start_routine", start),
                    ("creation_site", site),
                    ("creation_stack", Value::Array(stack?)),
                ],
            )
        };
        let rows = self.rows(report)?.into_iter().take(top).map(row);
        let columns = [
            "pid",
            "tid",
            "thread",
            "name",
            "group",
            "origin",
            "start_ns",
            "end_ns",
            "lifetime_ns",
            "end_is_estimate",
            "application_ns",
            "application_wait_ns",
            "application_preempted_ns",
            "unattributed_ns",
            "unattributed_wait_ns",
            "unattributed_preempted_ns",
            "on_cpu_ns",
            "own_cost_ns",
            "overlap_ns",
            "lost_calls",
            "creator",
            "function.name",
            "function.kind",
            "function.file",
            "function.line",
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
        let columns = [&columns[..], &MEASURES, &OFF_CPU].concat();
        let mut tables =
            vec![Rows { name: "threads", columns, rows: rows.collect::<Result<_, _>>()? }];
        if self.thread.threads.is_empty() {
            tables.push(groups::json_rows(report, self.group, top)?);
        }
        Ok(tables)
    }
}

/// Its own code, where that is known.
fn application(report: &Report, row: &ThreadRow) -> String {
    match report.analysis.processes[row.process].only_counts {
        true => String::new(),
        false => with_error(&row.measures, row.application_ns),
    }
}

/// What a thread waited, in library calls and, where the scheduler told, in its own code.
fn wait_ns(row: &ThreadRow) -> Ns {
    let own = row.outside_wait_ns().unwrap_or_default();
    Ns(row.measures.wait_ns.0.saturating_add(own.0))
}

/// For how long it could have run while others did, likewise; also during calls that were not timed.
fn preempted_ns(row: &ThreadRow) -> Option<Ns> {
    let own = row.outside_preempted_ns().unwrap_or_default();
    row.measures.preempted_ns.map(|ns| Ns(ns.0.saturating_add(own.0)))
}

/// A thread without a name has its number.
fn name(row: &ThreadRow) -> String {
    if row.name.is_empty() { format!("thread {}", row.thread) } else { row.name.clone() }
}

/// The program's function that the thread runs.
fn function(report: &Report, row: &ThreadRow) -> String {
    let function = report.places.thread_function(report.files(), row);
    function.as_ref().map(thread_functions::short).unwrap_or_default()
}

/// Where the program had the thread created.
fn created_in(report: &Report, row: &ThreadRow) -> String {
    let Some(site) = report.places.creation_site(report.files(), row) else { return String::new() };
    let place = report.places.find(report.files(), row.process, &site, AddressKind::ReturnAddress);
    place.short(site.object.map_or("", |number| report.names.object(number)))
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
