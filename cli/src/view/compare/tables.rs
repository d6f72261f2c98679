//! The tables of a comparison.

use chase_analyzer::{ApiChange, Basis, Change, Comparison, Verdict};

use super::super::left_out;
use super::super::syscalls::ratio;
use super::{both, function};
use crate::compare::Compared;
use crate::terminal::{Align, Cell, Look, Table, Terminal, count, duration, elapsed, percent};

/// Columns of the table as CSV.
pub(super) const COLUMNS: [&str; 51] = [
    "before.library",
    "before.symbol",
    "after.library",
    "after.symbol",
    "function.before",
    "function.after",
    "verdict",
    "time_per_call_ns.before",
    "time_per_call_ns.after",
    "time_per_call_ns.difference",
    "time_per_call_ns.relative",
    "time_per_call_ns.p",
    "calls.before",
    "calls.after",
    "calls.difference",
    "calls.relative",
    "calls.p",
    "self_per_call_ns.before",
    "self_per_call_ns.after",
    "self_per_call_ns.difference",
    "self_per_call_ns.relative",
    "self_per_call_ns.p",
    "self_ns.before",
    "self_ns.after",
    "self_ns.difference",
    "self_ns.relative",
    "self_ns.p",
    "share.before",
    "share.after",
    "share.difference",
    "p50_ns.before",
    "p50_ns.after",
    "p50_ns.difference",
    "p50_ns.p",
    "p999_ns.before",
    "p999_ns.after",
    "p999_ns.difference",
    "p999_ns.p",
    "wait_share.before",
    "wait_share.after",
    "wait_share.difference",
    "wait_share.p",
    "syscalls_per_call.before",
    "syscalls_per_call.after",
    "syscalls_per_call.difference",
    "syscalls_per_call.relative",
    "syscalls_per_call.p",
    "syscall_errors_per_call.before",
    "syscall_errors_per_call.after",
    "syscall_errors_per_call.difference",
    "syscall_errors_per_call.p",
];

/// Figures that are fractions.
const SHARE: &str = "share of all time";
const WAIT_SHARE: &str = "wait, of self";

/// How a figure is written.
type Shown = fn(f64) -> String;

fn time(ns: f64) -> String {
    elapsed(ns.round().max(0.0) as u64)
}

fn of_call(ns: f64) -> String {
    duration(ns.round().max(0.0) as u64)
}

fn number(value: f64) -> String {
    count(value.round().max(0.0) as u64)
}

fn some(value: Option<f64>, shown: Shown) -> String {
    value.map_or_else(String::new, shown)
}

/// `+25 %`, `×3.1` for what became many times as much.
fn difference(change: &Change) -> String {
    match (change.before, change.after, change.relative) {
        (_, _, Some(0.0)) => "=".to_owned(),
        (Some(before), Some(after), Some(relative)) if relative >= 1.0 => {
            format!("×{}", ratio(after / before))
        }
        (_, _, Some(relative)) => {
            let sign = if relative > 0.0 { '+' } else { '−' };
            format!("{sign}{}", percent(relative.abs()))
        }
        (Some(0.0), Some(0.0), None) => "=".to_owned(),
        _ => String::new(),
    }
}

/// `+4.4 points`: of shares, a percentage of a percentage would mislead.
fn points(change: &Change) -> String {
    match change.difference {
        Some(0.0) => "=".to_owned(),
        Some(difference) => format!("{:+.1} points", difference * 100.0).replace('-', "−"),
        None => String::new(),
    }
}

fn probability(p: Option<f64>) -> String {
    match p {
        None => String::new(),
        Some(p) if p < 0.001 => "<0.001".to_owned(),
        Some(p) => format!("{p:.3}"),
    }
}

fn verdict(verdict: Verdict) -> Cell {
    match verdict {
        Verdict::Slower => Cell::new("slower", Look::Warning),
        Verdict::Faster => Cell::new("faster", Look::Strong),
        Verdict::NoClearChange => Cell::new("no clear change", Look::Faint),
        Verdict::TooFew => Cell::new("too few to tell", Look::Faint),
        Verdict::OnlyBefore => "only in A".into(),
        Verdict::OnlyAfter => "only in B".into(),
    }
}

/// The runs as wholes.
pub(super) fn totals(comparison: &Comparison) -> Table {
    let totals = &comparison.totals;
    let mut table = Table::new([
        ("Whole run", Align::Text),
        ("A", Align::Number),
        ("B", Align::Number),
        ("change", Align::Number),
        ("p", Align::Number),
    ])
    .only_if(comparison.basis == Basis::Ranks, "p");
    let rows: [(&str, &Change, Shown); 6] = [
        ("wall time", &totals.wall_ns, time),
        ("application time", &totals.application_ns, time),
        ("time in libraries", &totals.library_ns, time),
        ("  of it waiting", &totals.wait_ns, time),
        ("library calls", &totals.calls, number),
        ("system calls", &totals.syscalls, number),
    ];
    for (name, change, shown) in rows {
        if change.before.is_some() || change.after.is_some() {
            table.add(line(name, change, shown));
        }
    }
    table
}

fn line(name: &str, change: &Change, shown: Shown) -> Vec<Cell> {
    vec![
        name.into(),
        some(change.before, shown).into(),
        some(change.after, shown).into(),
        difference(change).into(),
        probability(change.p).into(),
    ]
}

/// A line for each function.
pub(super) fn apis(comparison: &Comparison, terminal: Terminal, top: usize) -> String {
    let with_syscalls =
        comparison.totals.syscalls.before.is_some() || comparison.totals.syscalls.after.is_some();
    let mut table = Table::new([
        ("Function", Align::Name),
        ("Library", Align::Name),
        ("calls A", Align::Number),
        ("calls B", Align::Number),
        ("per call A", Align::Number),
        ("per call B", Align::Number),
        ("change", Align::Number),
        ("p50 A", Align::Number),
        ("p50 B", Align::Number),
        ("p99.9 A", Align::Number),
        ("p99.9 B", Align::Number),
        ("syscalls A", Align::Number),
        ("syscalls B", Align::Number),
        ("p", Align::Number),
        ("verdict", Align::Text),
    ])
    .only_if(comparison.basis == Basis::Ranks, "p")
    .only_if(with_syscalls, "syscalls A")
    .only_if(with_syscalls, "syscalls B")
    .may_drop([
        "p99.9 A",
        "p99.9 B",
        "p50 A",
        "p50 B",
        "p",
        "Library",
        "syscalls A",
        "syscalls B",
        "calls A",
        "calls B",
    ]);
    for row in comparison.apis.iter().take(top) {
        let metrics = &row.metrics;
        let name = both(row.before.as_ref().map(function), row.after.as_ref().map(function));
        let library = |name: &chase_analyzer::ApiName| name.library.clone();
        let library = both(row.before.as_ref().map(library), row.after.as_ref().map(library));
        table.row([
            name.into(),
            Cell::new(library, Look::Faint),
            some(metrics.calls.before, number).into(),
            some(metrics.calls.after, number).into(),
            some(metrics.time_per_call_ns.before, of_call).into(),
            some(metrics.time_per_call_ns.after, of_call).into(),
            difference(&metrics.time_per_call_ns).into(),
            some(metrics.p50_ns.before, of_call).into(),
            some(metrics.p50_ns.after, of_call).into(),
            some(metrics.p999_ns.before, of_call).into(),
            some(metrics.p999_ns.after, of_call).into(),
            some(metrics.syscalls_per_call.before, ratio).into(),
            some(metrics.syscalls_per_call.after, ratio).into(),
            probability(metrics.time_per_call_ns.p).into(),
            verdict(row.verdict),
        ]);
    }
    table.render(terminal) + &left_out(comparison.apis.len(), top, "functions")
}

/// All figures of one pair, and its system calls.
pub(super) fn detail(
    row: &ApiChange,
    compared: &Compared,
    terminal: Terminal,
    top: usize,
) -> String {
    let name = |name: &Option<chase_analyzer::ApiName>| match name {
        Some(name) => format!("{} ({})", function(name), name.library),
        None => "(not called)".to_owned(),
    };
    let (before, after) = (name(&row.before), name(&row.after));
    let is_ranked = compared.comparison.basis == Basis::Ranks;
    let head = |first| {
        Table::with_columns([
            (first, Align::Text),
            ("A", Align::Number),
            ("B", Align::Number),
            ("change", Align::Number),
            ("p", Align::Number),
        ])
        .only_if(is_ranked, "p")
    };
    let mut table = head("");
    let metrics = &row.metrics;
    let rows: [(&str, &Change, Shown); 10] = [
        ("calls", &metrics.calls, number),
        ("time per call", &metrics.time_per_call_ns, of_call),
        ("  self", &metrics.self_per_call_ns, of_call),
        ("p50", &metrics.p50_ns, of_call),
        ("p99.9", &metrics.p999_ns, of_call),
        ("self, all calls", &metrics.self_ns, time),
        (SHARE, &metrics.share, percent),
        (WAIT_SHARE, &metrics.wait_share, percent),
        ("syscalls", &metrics.syscalls_per_call, ratio),
        ("  of them failed", &metrics.syscall_errors_per_call, ratio),
    ];
    for (name, change, shown) in rows {
        if change.before.is_some() || change.after.is_some() {
            let mut line = line(name, change, shown);
            if matches!(name, SHARE | WAIT_SHARE) {
                line[3] = points(change).into();
            }
            table.add(line);
        }
    }
    let title = match before == after {
        true => before,
        false => format!("A {before}\nB {after}"),
    };
    let title: Vec<String> = title
        .lines()
        .map(|line| terminal.paint(Look::Strong, &crate::terminal::clean(line)))
        .collect();
    let mut out = format!("{}\n\n{}", title.join("\n"), table.render(terminal));
    if !row.syscalls.is_empty() {
        let mut table = head("syscalls per call");
        for syscall in row.syscalls.iter().take(top) {
            table.add(line(&syscall.syscall, &syscall.per_call, ratio));
        }
        out.push('\n');
        out.push_str(&table.render(terminal));
        out.push_str(&left_out(row.syscalls.len(), top, "system calls"));
    }
    let said = match (row.verdict, compared.after.is_some()) {
        (Verdict::Slower, true) => "B takes longer per call",
        (Verdict::Faster, true) => "B takes less time per call",
        (Verdict::Slower, false) => "the second takes longer per call",
        (Verdict::Faster, false) => "the second takes less time per call",
        (Verdict::NoClearChange, _) => "no clear difference in the time per call",
        (Verdict::TooFew, _) => "too few calls or runs to tell the times per call apart",
        (Verdict::OnlyBefore, _) => "called in A only",
        (Verdict::OnlyAfter, _) => "called in B only",
    };
    out + "\n" + &terminal.paint(Look::Strong, said) + "\n"
}
