//! The tables of system calls, for people and for programs.

use chase_analyzer::{
    ErrorCount, Nested, OfContext, OfThread, SyscallMeasures, SyscallRow, syscalls_by_category,
    syscalls_by_number,
};
use serde_json::{Map, Value, json};

use super::super::left_out;
use super::{OUTSIDE, Part, Syscalls, UNRECORDED, nobody};
use crate::args::SyscallsBy;
use crate::machine::{self, Rows};
use crate::report::Report;
use crate::terminal::{Align, Cell, Look, Table, Terminal, count, duration, elapsed, quantity};

/// What the columns mean.
pub(super) const TERMS: [(&str, &str); 8] = [
    (OUTSIDE, "by the code of the program and of libraries that nobody called, and by exit"),
    (
        UNRECORDED,
        "by the dynamic linker before recording began, at the ends of threads, and in threads and processes without a recording",
    ),
    ("per call", "system calls made by the function itself per call of it"),
    ("with nested", "the same with those made in library calls inside"),
    ("wall, CPU", "time from entry to return, and the part of it on the CPU"),
    ("p50 <, p99 <", "half, and 99 %, of the calls took less: bounds, from powers of two"),
    ("restarts", "calls that a signal ended and the kernel made again"),
    ("bytes", "sum of the results, of calls that return a number of bytes"),
];

/// Columns of the figures.
const MEASURES: [&str; 11] = [
    "calls",
    "errors",
    "restarts",
    "unfinished",
    "total_ns",
    "off_cpu_ns",
    "cpu_ns",
    "max_ns",
    "p50_below_ns",
    "p99_below_ns",
    "bytes",
];
const NESTED_FIELDS: [&str; 6] = [
    "nested.calls",
    "nested.per_call",
    "nested.errors",
    "nested.total_ns",
    "nested.off_cpu_ns",
    "nested.bytes",
];

/// Headings.
const NESTED: &str = "with nested";
const NESTED_WALL: &str = "nested wall";

const WHOSE: [(&str, Align); 11] = [
    ("calls", Align::Number),
    ("per call", Align::Number),
    (NESTED, Align::Number),
    ("errors", Align::Number),
    ("restarts", Align::Number),
    ("wall", Align::Number),
    (NESTED_WALL, Align::Number),
    ("CPU", Align::Number),
    ("p50 <", Align::Number),
    ("p99 <", Align::Number),
    ("bytes", Align::Number),
];

/// A table whose rows begin with `N` names. Of columns that may tell nothing, those in `which` are
/// there.
fn table<const N: usize>(names: [&str; N], which: &[&str]) -> Table {
    let mut table = Table::with_columns(names.iter().map(|name| (*name, Align::Name)).chain(WHOSE));
    for heading in ["per call", NESTED, NESTED_WALL] {
        table = table.only_if(which.contains(&heading), heading);
    }
    table.may_drop(["restarts", "bytes", "p99 <", "p50 <", "Category", "errors", "CPU"])
}

/// The columns for rows that are functions or libraries: what is nested, where there is any.
fn which<K>(rows: &[&SyscallRow<K>]) -> &'static [&'static str] {
    let differs = |row: &&SyscallRow<K>| {
        row.nested.as_ref().is_some_and(|nested| nested.calls != row.measures.calls)
    };
    if rows.iter().any(differs) { &["per call", NESTED, NESTED_WALL] } else { &["per call"] }
}

/// The figures of a row, in the order of [`WHOSE`].
fn figures<const N: usize>(
    names: [Cell; N],
    measures: &SyscallMeasures,
    per_call: Option<f64>,
    nested: Option<&Nested>,
) -> Vec<Cell> {
    let some = |number: u64| if number == 0 { String::new() } else { count(number) };
    let below = |ns: Option<chase_analyzer::Ns>| ns.map_or_else(String::new, |ns| duration(ns.0));
    let any = measures.calls > 0;
    let time = |ns: u64| if any { elapsed(ns) } else { String::new() };
    let figures = [
        some(measures.calls),
        per_call.filter(|_| any).map_or_else(String::new, ratio),
        nested.and_then(|nested| nested.per_call).map_or_else(String::new, ratio),
        some(measures.errors),
        some(measures.restarts),
        time(measures.total_ns.0),
        nested.map_or_else(String::new, |nested| elapsed(nested.total_ns.0)),
        time(measures.cpu_ns.0),
        below(measures.p50_below_ns),
        below(measures.p99_below_ns),
        measures.bytes.map_or_else(String::new, quantity),
    ];
    names.into_iter().chain(figures.map(Cell::from)).collect()
}

/// Three digits, also of what is rare.
pub(in crate::view) fn ratio(value: f64) -> String {
    match value {
        0.0 => "0".to_owned(),
        value if value < 0.001 => "<0.001".to_owned(),
        value if value < 0.0995 => format!("{value:.3}"),
        value if value < 9.995 => format!("{value:.2}"),
        value if value < 99.95 => format!("{value:.1}"),
        value => count(value.round() as u64),
    }
}

pub(super) fn threads(
    report: &Report,
    rows: &[&SyscallRow<OfThread>],
    terminal: Terminal,
    top: usize,
) -> String {
    let mut table = table(["TID", "Thread", "System call"], &[]);
    for row in rows.iter().take(top) {
        let process = report.analysis.processes.get(row.of.process as usize);
        let name = match (row.of.name.is_empty(), process) {
            (true, Some(process)) => format!("(of process {})", process.pid),
            _ => row.of.name.to_string(),
        };
        let names = [row.of.tid.to_string().into(), name.into(), (&*row.syscall).into()];
        table.add(figures(names, &row.measures, None, None));
    }
    table.render(terminal) + &left_out(rows.len(), top, "rows")
}

/// One table for people; the one by thread is not among them.
pub(super) fn text(
    view: &Syscalls<'_>,
    part: &Part<'_>,
    by: SyscallsBy,
    terminal: Terminal,
    top: usize,
) -> String {
    let (table, all) = match by {
        SyscallsBy::Thread => return String::new(),
        SyscallsBy::Api => {
            let rows = view.by_api(part);
            let mut table = table(["Function", "Library", "System call"], which(&rows));
            for row in rows.iter().take(top) {
                let (name, library) = match row.of.api {
                    Some(api) => (part.names.short(api as usize), &*row.of.library),
                    None => (nobody(part.analysis, row.of.is_recorded), ""),
                };
                let names = [name.into(), Cell::new(library, Look::Faint), (&*row.syscall).into()];
                table.add(figures(names, &row.measures, row.per_call, row.nested.as_deref()));
            }
            (table, rows.len())
        }
        SyscallsBy::Library => {
            let rows = view.by_library(part);
            let mut table = table(["Library", "System call"], which(&rows));
            for row in rows.iter().take(top) {
                let of = &row.of;
                let name = match of.object {
                    Some(object) => part.names.object(object),
                    None => nobody(part.analysis, of.is_recorded),
                };
                let names = [name.into(), (&*row.syscall).into()];
                table.add(figures(names, &row.measures, row.per_call, row.nested.as_deref()));
            }
            (table, rows.len())
        }
        SyscallsBy::Context => {
            let rows = &part.analysis.syscalls.by_context;
            let mut table = table(["called in", "System call"], &["per call"]);
            for row in rows.iter().take(top) {
                let names = [chain(part, row.of).into(), (&*row.syscall).into()];
                table.add(figures(names, &row.measures, row.per_call, None));
            }
            (table, rows.len())
        }
        SyscallsBy::Category => {
            let rows = syscalls_by_category(view.by_api(part));
            let mut table = table(["Category"], &[]);
            for row in rows.iter().take(top) {
                table.add(figures([row.category.label().into()], &row.measures, None, None));
            }
            (table, rows.len())
        }
        SyscallsBy::Syscall => {
            let rows = syscalls_by_number(view.by_api(part));
            let mut table = table(["System call", "Category"], &[]);
            for row in rows.iter().take(top) {
                let category = Cell::new(row.category.label(), Look::Faint);
                table.add(figures([(&*row.syscall).into(), category], &row.measures, None, None));
            }
            (table, rows.len())
        }
        SyscallsBy::Error => {
            let rows = errors(view, part);
            let mut table = Table::new([
                ("Error of", Align::Name),
                ("error", Align::Text),
                ("number", Align::Number),
            ]);
            for (syscall, error) in rows.iter().take(top) {
                table.row([syscall.into(), error_name(error).into(), count(error.count).into()]);
            }
            (table, rows.len())
        }
    };
    if all == 0 {
        return String::new();
    }
    table.render(terminal) + &left_out(all, top, "rows")
}

/// Errors by system call, most first.
fn errors(view: &Syscalls<'_>, part: &Part<'_>) -> Vec<(String, ErrorCount)> {
    let mut errors: Vec<(String, ErrorCount)> = syscalls_by_number(view.by_api(part))
        .iter()
        .flat_map(|row| row.measures.by_error.iter().map(|error| (row.syscall.to_string(), *error)))
        .collect();
    errors.sort_by_key(|(_, error)| std::cmp::Reverse(error.count));
    errors
}

fn error_name(error: &ErrorCount) -> String {
    error.name.map_or_else(|| format!("error {}", error.errno), str::to_owned)
}

/// `main → fgets → read`
fn chain(part: &Part<'_>, of: OfContext) -> String {
    let contexts = &part.analysis.contexts;
    let row = |number: u32| contexts.get(number as usize);
    let rows = std::iter::successors(of.context.and_then(row), |at| at.parent.and_then(row));
    let mut names: Vec<&str> = rows.map(|at| part.names.short(at.api as usize)).collect();
    names.reverse();
    if names.is_empty() {
        nobody(part.analysis, of.is_recorded).to_owned()
    } else {
        names.join(" → ")
    }
}

/// All tables, or the one asked for; what is asked for, or the one by API, comes first.
pub(super) fn machine(
    view: &Syscalls<'_>,
    report: &Report,
    top: usize,
) -> anyhow::Result<Vec<Rows>> {
    const ALL: [SyscallsBy; 6] = [
        SyscallsBy::Api,
        SyscallsBy::Library,
        SyscallsBy::Context,
        SyscallsBy::Category,
        SyscallsBy::Syscall,
        SyscallsBy::Error,
    ];
    let wanted = |by: &&SyscallsBy| view.by.is_none_or(|only| only == **by);
    let mut tables: Vec<Rows> = Vec::new();
    for by in ALL.iter().filter(wanted) {
        let mut joined: Option<Rows> = None;
        view.parts(report, |_, part| {
            let mut rows = match by {
                SyscallsBy::Api => by_api(view, part, top)?,
                SyscallsBy::Library => by_library(view, part, top)?,
                SyscallsBy::Context => by_context(part, top)?,
                SyscallsBy::Category => by_category(view, part, top)?,
                SyscallsBy::Error => by_error(view, part, top),
                SyscallsBy::Syscall | SyscallsBy::Thread => by_syscall(view, part, top)?,
            };
            whose(part, view, &mut rows);
            match &mut joined {
                Some(joined) => joined.rows.append(&mut rows.rows),
                None => joined = Some(rows),
            }
            Ok(())
        })?;
        tables.extend(joined);
    }
    if view.by.is_none_or(|only| only == SyscallsBy::Thread) {
        tables.push(by_thread(view, report, top)?);
    }
    Ok(tables)
}

/// With `--thread`, each row says whose it is.
fn whose(part: &Part<'_>, view: &Syscalls<'_>, rows: &mut Rows) {
    let Some(thread) = part.analysis.threads.first().filter(|_| !view.thread.threads.is_empty())
    else {
        return;
    };
    let pid = part.analysis.processes.get(thread.process).map(|process| process.pid);
    for row in &mut rows.rows {
        row.insert("pid".to_owned(), pid.into());
        row.insert("tid".to_owned(), thread.tid.into());
    }
    rows.columns.splice(0..0, ["pid", "tid"]);
}

fn columns(first: &[&'static str], nested: bool) -> Vec<&'static str> {
    let nested = if nested { &NESTED_FIELDS[..] } else { &[] };
    [first, &["number", "syscall", "category", "per_call"], &MEASURES, nested].concat()
}

pub(super) fn by_api(view: &Syscalls<'_>, part: &Part<'_>, top: usize) -> anyhow::Result<Rows> {
    let row = |row: &SyscallRow<_>| {
        let of: &chase_analyzer::OfApi = &row.of;
        let function = of.api.map(|api| part.names.full(api as usize));
        machine::row(row, [("function", function.into())])
    };
    let rows = view.by_api(part).into_iter().take(top).map(row).collect::<Result<_, _>>()?;
    let columns = columns(&["library", "function", "symbol", "is_recorded", "api_calls"], true);
    Ok(Rows { name: "syscalls_by_api", columns, rows })
}

fn by_library(view: &Syscalls<'_>, part: &Part<'_>, top: usize) -> anyhow::Result<Rows> {
    let rows = view.by_library(part).into_iter().take(top).map(|row| machine::row(row, []));
    let columns = columns(&["library", "is_recorded", "library_calls"], true);
    Ok(Rows { name: "syscalls_by_library", columns, rows: rows.collect::<Result<_, _>>()? })
}

fn by_context(part: &Part<'_>, top: usize) -> anyhow::Result<Rows> {
    let row = |row: &SyscallRow<_>| {
        let of: &chase_analyzer::OfContext = &row.of;
        machine::row(row, [("chain", chain(part, *of).into())])
    };
    let rows = part.analysis.syscalls.by_context.iter().take(top).map(row);
    let columns = columns(&["context", "is_recorded", "chain"], false);
    Ok(Rows { name: "syscalls_by_context", columns, rows: rows.collect::<Result<_, _>>()? })
}

fn by_category(view: &Syscalls<'_>, part: &Part<'_>, top: usize) -> anyhow::Result<Rows> {
    let rows = syscalls_by_category(view.by_api(part));
    let rows = rows.iter().take(top).map(|row| machine::row(row, []));
    let columns = [&["category"][..], &MEASURES].concat();
    Ok(Rows { name: "syscalls_by_category", columns, rows: rows.collect::<Result<_, _>>()? })
}

fn by_syscall(view: &Syscalls<'_>, part: &Part<'_>, top: usize) -> anyhow::Result<Rows> {
    let rows = syscalls_by_number(view.by_api(part));
    let rows = rows.iter().take(top).map(|row| machine::row(row, []));
    let columns = [&["number", "syscall", "category"][..], &MEASURES].concat();
    Ok(Rows { name: "syscalls", columns, rows: rows.collect::<Result<_, _>>()? })
}

fn by_error(view: &Syscalls<'_>, part: &Part<'_>, top: usize) -> Rows {
    let row = |(syscall, error): &(String, ErrorCount)| {
        let row = json!({"syscall": syscall, "errno": error.errno, "error": error_name(error),
            "count": error.count});
        match row {
            Value::Object(map) => map,
            _ => Map::new(),
        }
    };
    let rows = errors(view, part).iter().take(top).map(row).collect();
    let columns = vec!["syscall", "errno", "error", "count"];
    Rows { name: "syscall_errors", columns, rows }
}

fn by_thread(view: &Syscalls<'_>, report: &Report, top: usize) -> anyhow::Result<Rows> {
    let row = |row: &SyscallRow<OfThread>| {
        let process = report.analysis.processes.get(row.of.process as usize);
        machine::row(row, [("pid", process.map(|process| process.pid).into())])
    };
    let rows = view.by_thread(report).into_iter().take(top).map(row);
    let first = ["pid", "tid", "thread", "name", "number", "syscall", "category"];
    let columns = [&first[..], &MEASURES].concat();
    Ok(Rows { name: "syscalls_by_thread", columns, rows: rows.collect::<Result<_, _>>()? })
}
