//! What the threads that matter are blocked by, and whether processors are scarce.

use chase_analyzer::{Blocked, BlockedRow, IdleRow, WaitSource, blocked};
use serde_json::Value;

use super::{apis, waiting};
use crate::causes::function;
use crate::machine::{self, Rows};
use crate::report::{Report, fraction};
use crate::sentences;
use crate::terminal::{Align, Cell, Look, Table, Terminal, clean, elapsed, percent, plural};

/// Functions that idle threads are said to wait in.
const IDLE: usize = 3;
/// Rows that are a smaller part of all are left out of the summary.
const SMALL: f64 = 0.001;

pub(super) const IDLE_LEGEND: (&str, &str) = (
    "idle",
    "a thread that spent 95 % of its life waiting to be told of work (a condition, a semaphore, readiness, a time, an end): it is left out of what is blocked",
);

/// Sentences and a table; empty where nothing ever waited.
pub(super) fn text(report: &Report, terminal: Terminal, top: usize) -> String {
    let found = blocked(&report.analysis);
    let mut out = String::new();
    if found.wait_ns.0 > 0 || !found.idle.is_empty() {
        out.push('\n');
        out.push_str(&heading(report, &found, terminal));
    }
    let is_seen = |row: &&BlockedRow| fraction(row.wait_ns, found.wait_ns.as_f64()) >= SMALL;
    let rows: Vec<_> = found.rows.iter().filter(is_seen).collect();
    if !rows.is_empty() {
        out.push_str(&table(report, &found, &rows[..rows.len().min(top)]).render(terminal));
        out.push_str(&super::more(report, rows.len(), top, "waits"));
    }
    if let Some(runnable) = runnable(report) {
        let text = format!("  {runnable}");
        out.push('\n');
        out.push_str(&terminal.paint(Look::Strong, "Waiting for a processor"));
        out.push_str(&super::wrap(
            super::words(&text),
            24,
            2,
            terminal.width.unwrap_or(usize::MAX),
        ));
        out.push('\n');
    }
    out
}

/// How long threads waited for a processor, where that matters.
pub(super) fn runnable(report: &Report) -> Option<String> {
    let found = blocked(&report.analysis).runnable?;
    Some(format!(
        "{}, {} of the time in which threads wanted one; {} concerned",
        elapsed(found.runnable_ns.0),
        percent(found.of_wanted),
        plural(found.threads as u64, "thread"),
    ))
}

/// The idle threads in one line; empty if there are none.
pub(super) fn idle_threads(report: &Report) -> String {
    let found = blocked(&report.analysis);
    if found.idle.is_empty() { String::new() } else { idle(report, &found) }
}

/// `Blocked  0.24 s in 3 threads; 8 idle threads: 7 in pthread_cond_wait, …`.
fn heading(report: &Report, found: &Blocked, terminal: Terminal) -> String {
    let guess = if report.analysis.wait_source() == WaitSource::Name { " (by name)" } else { "" };
    // Where all threads count, none was found to have work.
    let with_work = if found.idle.is_empty() { "" } else { " with work" };
    let mut text = match found.threads {
        0 => String::new(),
        threads => format!(
            "  {}{guess} in {}{with_work}",
            elapsed(found.wait_ns.0),
            plural(threads as u64, "thread"),
        ),
    };
    if !found.idle.is_empty() {
        text.push_str(if text.is_empty() { "  " } else { "; " });
        text.push_str(&idle(report, found));
    }
    let text = clean(&text).into_owned();
    let width = terminal.width.unwrap_or(usize::MAX);
    let text = super::wrap(super::words(&text), "Blocked".len(), 2, width);
    format!("{}{text}\n", terminal.paint(Look::Strong, "Blocked"))
}

/// The idle threads in one line.
fn idle(report: &Report, found: &Blocked) -> String {
    let where_ = |row: &IdleRow| format!("{} in {}", row.threads, function(report, row.api));
    let mut places: Vec<String> = found.idle.iter().take(IDLE).map(where_).collect();
    let named: usize = found.idle.iter().take(IDLE).map(|row| row.threads).sum();
    if found.idle_threads() > named {
        places.push(format!("{} elsewhere", found.idle_threads() - named));
    }
    let threads = found.idle_threads() as u64;
    let idle = format!("{} idle", plural(threads, "thread"));
    match &*found.idle {
        [only] => format!("{idle} in {}", function(report, only.api)),
        _ => format!("{idle}: {}", places.join(", ")),
    }
}

fn table(report: &Report, found: &Blocked, rows: &[&BlockedRow]) -> Table {
    let mut table = Table::new([
        ("Blocked in", Align::Name),
        ("Library", Align::Name),
        ("for", Align::Text),
        (waiting::heading(report), Align::Number),
        ("share", Align::Number),
        ("threads", Align::Number),
        ("most by", Align::Text),
    ])
    .may_drop(["most by", "Library", "threads"]);
    for row in rows {
        let object = row.api.map(|api| report.analysis.apis[api as usize].object);
        table.row([
            function(report, row.api).into(),
            Cell::new(object.map_or("", |object| report.names.object(object)), Look::Faint),
            apis::cause(row.cause).into(),
            elapsed(row.wait_ns.0).into(),
            percent(fraction(row.wait_ns, found.wait_ns.as_f64())).into(),
            row.threads.to_string().into(),
            if row.threads > 1 {
                let most = sentences::thread(report, row.max.thread);
                format!("{most}: {}", elapsed(row.max.ns.0)).into()
            } else {
                sentences::thread(report, row.max.thread).into()
            },
        ]);
    }
    table
}

/// The same for programs: `blocked` and `idle`.
pub(super) fn rows(report: &Report) -> anyhow::Result<[Rows; 2]> {
    let analysis = &report.analysis;
    let found = blocked(analysis);
    let names = |api: Option<u32>| {
        let row = api.map(|api| &analysis.apis[api as usize]);
        [
            ("library", row.map(|row| &*row.library).into()),
            ("function", api.map(|api| report.names.full(api as usize)).into()),
            ("symbol", Value::from(row.map(|row| &*row.symbol))),
        ]
    };
    let mut blocked = Vec::new();
    for row in &found.rows {
        let mut map = machine::row(row, names(row.api))?;
        map.values_mut().for_each(|value| super::groups::name_threads(report, value));
        blocked.push(map);
    }
    let mut idle = Vec::new();
    for row in &found.idle {
        let tid = |&thread: &u32| Value::from(analysis.threads[thread as usize].tid);
        let mut map = machine::row(row, names(row.api))?;
        map.insert("members".to_owned(), row.members.iter().map(tid).collect());
        idle.push(map);
    }
    let columns = ["cause", "library", "function", "wait_ns", "threads", "max.tid", "max.ns"];
    Ok([
        Rows { name: "blocked", columns: columns.into(), rows: blocked },
        Rows {
            name: "idle",
            columns: vec!["library", "function", "threads", "wait_ns"],
            rows: idle,
        },
    ])
}
