//! The critical path: what the run's length is made of.

use chase_analyzer::{CriticalPath, Doing, PathPart, PathStep, PathWait, critical_path};
use serde_json::{Map, Value};

use super::waits::OWN_CODE;
use super::{Show, left_out, legend};
use crate::causes;
use crate::machine::{self, Rows};
use crate::report::Report;
use crate::terminal::{Align, Table, Terminal, count, elapsed, percent, plural};

/// `path`.
pub(super) struct Path;

fn path(report: &Report) -> Option<CriticalPath> {
    let images = &report.loaded.images;
    critical_path(images, &report.analysis, report.groups(), &report.routines())
}

/// What is done, where, and for what it is waited.
fn words(report: &Report, doing: &Doing) -> [String; 3] {
    match doing {
        Doing::Running => ["runs".to_owned(), String::new(), String::new()],
        Doing::Woken => ["was woken".to_owned(), String::new(), String::new()],
        Doing::Waiting(PathWait { api, site, process, object, .. }) => {
            let call = api.map_or(OWN_CODE, |api| report.names.short(api as usize));
            let site = causes::site(report, *process, *site);
            [format!("waits in {call}"), site, causes::object(report, *process, object)]
        }
    }
}

/// Parts of a path, longest first.
fn parts_table(report: &Report, parts: &[PathPart], top: usize) -> Table {
    let mut table = Table::new([
        ("Group", Align::Name),
        ("does", Align::Name),
        ("at", Align::Name),
        ("for", Align::Name),
        ("time", Align::Number),
        ("of the run", Align::Number),
        ("steps", Align::Number),
    ]);
    for part in parts.iter().take(top) {
        let [does, at, object] = words(report, &part.doing);
        table.row([
            (&*report.groups().rows[part.group as usize].label).into(),
            does.into(),
            at.into(),
            causes::brief(&object).into(),
            elapsed(part.ns.0).into(),
            percent(part.share).into(),
            count(part.steps as u64).into(),
        ]);
    }
    table
}

/// Parts and steps of a path as JSON and CSV have them.
pub(super) fn path_rows(
    report: &Report,
    parts: &[PathPart],
    steps: &[PathStep],
    top: usize,
) -> anyhow::Result<Vec<Rows>> {
    let label = |group: u32| Value::from(&*report.groups().rows[group as usize].label);
    let named = |map: &mut Map<String, Value>, doing: &Doing| {
        let [_, at, object] = words(report, doing);
        let api = match doing {
            Doing::Waiting(wait) => wait.api.map(|api| report.names.full(api as usize)),
            _ => None,
        };
        map.insert("function".to_owned(), api.into());
        map.insert("place".to_owned(), at.into());
        map.insert("object_name".to_owned(), object.into());
    };
    let mut part_rows = Vec::new();
    for part in parts.iter().take(top) {
        let mut map = machine::row(part, [("group", label(part.group))])?;
        named(&mut map, &part.doing);
        part_rows.push(map);
    }
    let mut step_rows = Vec::new();
    for step in steps.iter().take(top) {
        let thread = &report.analysis.threads[step.thread as usize];
        let group = report.groups().of_thread[step.thread as usize];
        let more = [("thread", Value::from(thread.tid)), ("group", label(group))];
        let mut map = machine::row(step, more)?;
        named(&mut map, &step.doing);
        step_rows.push(map);
    }
    let columns = ["group", "doing", "function", "place", "object_name", "ns", "share", "steps"];
    let parts = Rows { name: "parts", columns: columns.into(), rows: part_rows };
    let columns =
        ["thread", "group", "begin_ns", "end_ns", "doing", "function", "place", "object_name"];
    Ok(vec![parts, Rows { name: "steps", columns: columns.into(), rows: step_rows }])
}

pub(super) fn parts_text(
    report: &Report,
    parts: &[PathPart],
    terminal: Terminal,
    top: usize,
) -> String {
    let table = parts_table(report, parts, top).render(terminal);
    table + &left_out(parts.len(), top, "parts")
}

/// What it means that so many waits, or more, are missing; empty if none are.
pub(super) fn missing(lost: u64, meaning: &str) -> String {
    match lost {
        0 => String::new(),
        _ => format!("Missing: at least {}; {meaning}.\n", plural(lost, "long wait")),
    }
}

impl Show for Path {
    const NAME: &'static str = "path";

    fn text(&self, report: &Report, terminal: Terminal, top: usize) -> anyhow::Result<String> {
        let Some(path) = path(report) else {
            return Ok("Nothing is known of the critical path: no companion has seen a wait of a millisecond or more.\n".into());
        };
        let mut out = parts_text(report, &path.parts, terminal, top);
        out.push_str(&missing(path.lost, "the path may go on in the wrong thread"));
        out.push_str(&legend(
            terminal,
            &[
                ("runs", "or could run, or waits for less than a millisecond at a time"),
                ("was woken", "by another thread, and does not run yet"),
                ("waits", "for what no thread of the run does: time, a disk, another machine"),
                ("of the run", "the path is as long as the run: what gets shorter on it, shortens the run, until another path is longer"),
            ],
        ));
        Ok(out)
    }

    fn tables(&self, report: &Report, top: usize) -> anyhow::Result<Vec<Rows>> {
        let path = path(report).unwrap_or_default();
        path_rows(report, &path.parts, &path.steps, top)
    }
}
