//! Time and calls of each library.

use chase_analyzer::{LibraryKind, LibraryRow};

use super::sampled::{self, CPU, CPU_LEGEND, KERNEL};
use super::sorting;
use super::waiting::{self, PREEMPTED};
use super::{
    PERCENT, QUANTILES, SELF, Show, TOTAL, at_least, calls, counted, estimates, left_out, legend,
    longest_of, of_call, self_share, self_time, share, total_time,
};
use crate::args::{LibFilter, SortArg, matches};
use crate::machine::{self, MEASURES, OFF_CPU, ON_CPU, Rows};
use crate::report::Report;
use crate::terminal::{Align, Cell, Look, Table, Terminal};

pub(super) struct Libs<'a> {
    pub(super) lib: &'a LibFilter,
    pub(super) sort: SortArg,
}

impl Libs<'_> {
    fn rows<'r>(&self, report: &'r Report) -> Vec<&'r LibraryRow> {
        let wanted = |row: &&LibraryRow| matches(&self.lib.libs, &[&row.name, &row.path]);
        let mut rows: Vec<_> = report.analysis.libraries.iter().filter(wanted).collect();
        sorting::sort(&mut rows, self.sort, |row| &row.measures, |row| row.name.clone());
        rows
    }
}

impl Show for Libs<'_> {
    const NAME: &'static str = "libs";

    fn text(&self, report: &Report, terminal: Terminal, top: usize) -> anyhow::Result<String> {
        let rows = self.rows(report);
        let mut out = table(report, rows.iter().take(top).copied()).render(terminal);
        out.push_str(&left_out(rows.len(), top, "libraries"));
        let mut terms = match sampled::is_sampled(report) {
            true => vec![CPU_LEGEND],
            false => Vec::new(),
        };
        terms
            .extend([&[PERCENT, SELF, TOTAL][..], &waiting::legend(report), &[QUANTILES]].concat());
        terms.extend(counted(report));
        terms.extend(estimates(report));
        terms.extend(not_attributed(report));
        out.push_str(&legend(terminal, &terms));
        Ok(out)
    }

    fn tables(&self, report: &Report, top: usize) -> anyhow::Result<Vec<Rows>> {
        let rows = self.rows(report).into_iter().take(top).map(|row| machine::row(row, []));
        let columns =
            [&["kind", "name", "path", "own_code_ns"][..], &MEASURES, &ON_CPU, &OFF_CPU].concat();
        Ok(vec![Rows { name: "libraries", columns, rows: rows.collect::<Result<_, _>>()? }])
    }
}

/// Explanation of the row of time that belongs to nobody, if there is one.
pub(super) fn not_attributed(report: &Report) -> Option<(&'static str, &'static str)> {
    const OUTSIDE: (&str, &str) = (
        "[not attributed]",
        "what is outside of the timed calls: the program's own code, and all calls that were only counted",
    );
    const TERM: (&str, &str) = (
        "[not attributed]",
        "an estimate: how long others had the processor during calls that were not timed, and during which of them nobody measured",
    );
    let is_it = |row: &LibraryRow| row.kind == LibraryKind::Unattributed;
    report.analysis.libraries.iter().any(is_it).then_some(match report.analysis.only_counts() {
        true => OUTSIDE,
        false => TERM,
    })
}

fn table<'r>(report: &Report, rows: impl Iterator<Item = &'r LibraryRow>) -> Table {
    let mut table = Table::new([
        ("Library", Align::Name),
        (CPU, Align::Number),
        (KERNEL, Align::Number),
        ("%", Align::Number),
        ("self", Align::Number),
        ("total", Align::Number),
        (waiting::heading(report), Align::Number),
        (PREEMPTED, Align::Number),
        ("calls", Align::Number),
        ("p50", Align::Number),
        ("p99", Align::Number),
        ("p99.9", Align::Number),
        ("max", Align::Number),
    ])
    .only_if(waiting::is_measured(report), PREEMPTED)
    .only_if(sampled::is_sampled(report), CPU)
    .only_if(sampled::is_sampled(report), KERNEL)
    .may_drop(["p99", "max", "total", PREEMPTED, KERNEL, "p99.9"]);
    for row in rows {
        let measures = &row.measures;
        table.row([
            name(report, row),
            sampled::share(report, row.on_cpu).into(),
            sampled::kernel(report, row.on_cpu).into(),
            self_share(report, measures).into(),
            at_least(report, measures, self_time(measures)).into(),
            match row.kind {
                LibraryKind::Application => String::new(),
                LibraryKind::Unattributed => String::new(),
                LibraryKind::Library => at_least(report, measures, total_time(measures)),
            }
            .into(),
            share(report, measures.wait_ns).into(),
            waiting::preempted(report, measures).into(),
            calls(measures).into(),
            of_call(measures.p50_ns).into(),
            of_call(measures.p99_ns).into(),
            of_call(measures.p999_ns).into(),
            longest_of(measures).into(),
        ]);
    }
    if let Some(row) = sampled::not_sampled::<13>(report) {
        table.row(row);
    }
    table
}

/// The application stands out from its libraries.
pub(super) fn name(report: &Report, row: &LibraryRow) -> Cell {
    let name = report.names.object(row.object);
    match row.kind {
        LibraryKind::Application => Cell::new(format!("{name} (application)"), Look::Strong),
        LibraryKind::Library | LibraryKind::Unattributed => name.into(),
    }
}
