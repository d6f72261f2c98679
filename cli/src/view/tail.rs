//! The slowest calls of each function in each thread group.

use chase_analyzer::TailRow;
use serde_json::Value;

use super::apis::is_wanted;
use super::groups::{chosen, name_threads};
use super::{SAMPLED, Show, approximate, left_out, legend, longest, of_call};
use crate::args::{ApiFilter, GroupFilter, LibFilter};
use crate::machine::{self, Rows};
use crate::report::Report;
use crate::terminal::{Align, Cell, Look, Table, Terminal, count, duration, percent};

pub(super) struct Tail<'a> {
    pub(super) lib: &'a LibFilter,
    pub(super) api: &'a ApiFilter,
    pub(super) group: &'a GroupFilter,
}

impl Tail<'_> {
    fn rows<'r>(&self, report: &'r Report) -> anyhow::Result<Vec<&'r TailRow>> {
        let chosen = chosen(report, self.group)?;
        let (analysis, names) = (&report.analysis, &report.names);
        let wanted = |row: &&TailRow| {
            chosen[row.group as usize]
                && is_wanted(analysis, names, row.api as usize, self.lib, self.api)
        };
        Ok(report.tails().rows.iter().filter(wanted).collect())
    }
}

impl Show for Tail<'_> {
    const NAME: &'static str = "tail";

    fn text(&self, report: &Report, terminal: Terminal, top: usize) -> anyhow::Result<String> {
        let rows = self.rows(report)?;
        let mut table = Table::new([
            ("Function", Align::Name),
            ("Library", Align::Name),
            ("Group", Align::Name),
            ("calls", Align::Number),
            ("p50", Align::Number),
            ("p90", Align::Number),
            ("p99", Align::Number),
            ("p99.9", Align::Number),
            ("p99.99", Align::Number),
            ("max", Align::Number),
            ("ratio", Align::Number),
            ("> p99", Align::Number),
            ("long = large", Align::Number),
            ("by", Align::Text),
            ("system calls", Align::Text),
        ])
        .only_if(rows.iter().any(|row| !row.syscalls.is_empty()), "system calls")
        .only_if(rows.iter().take(top).any(|row| by_size(report, row).is_some()), BY_SIZE.0)
        .may_drop(["p90", "Library", "p99.99", "calls", "by", BY_SIZE.0, "system calls"]);
        for row in rows.iter().take(top) {
            let api = &report.analysis.apis[row.api as usize];
            let guess = |figure: String| match row.sampled && !figure.is_empty() {
                true => format!("~{figure}"),
                false => figure,
            };
            table.row([
                report.names.short(row.api as usize).into(),
                Cell::new(report.names.object(api.object), Look::Faint),
                (&*report.groups().rows[row.group as usize].label).into(),
                approximate(api.measures.calls_estimated, count(row.calls)).into(),
                of_call(row.p50_ns).into(),
                of_call(row.p90_ns).into(),
                of_call(row.p99_ns).into(),
                of_call(row.p999_ns).into(),
                of_call(row.p9999_ns).into(),
                longest(row.max_ns, row.sampled).into(),
                row.tail_ratio.map_or_else(String::new, |ratio| format!("{ratio:.1}")).into(),
                guess(row.above_p99.map_or_else(String::new, percent)).into(),
                by_size(report, row).unwrap_or_default().into(),
                guess(holders(report, row)).into(),
                syscalls(row).into(),
            ]);
        }
        let mut out = table.render(terminal);
        out.push_str(&left_out(rows.len(), top, "functions"));
        let mut terms = vec![
            (
                "p50 … p99.99",
                "so many per cent of the calls took no longer; service time of single calls, within 6.25 %",
            ),
            ("ratio", "p99.9 / p50, where p50 is 10 ns and more"),
            ("> p99", "share of the function's time in calls longer than p99"),
            ("by", "the thread that makes most of them, and how many threads make any"),
            ("system calls", "those of the function with the longest single call, and that"),
        ];
        if rows.iter().take(top).any(|row| by_size(report, row).is_some()) {
            terms.push(BY_SIZE);
        }
        if rows.iter().any(|row| row.sampled) {
            terms.push(SAMPLED);
        }
        out.push_str(&legend(terminal, &terms));
        Ok(out)
    }

    fn tables(&self, report: &Report, top: usize) -> anyhow::Result<Vec<Rows>> {
        let mut rows = Vec::new();
        for row in self.rows(report)?.into_iter().take(top) {
            let api = &report.analysis.apis[row.api as usize];
            let group = &report.groups().rows[row.group as usize];
            let mut map = machine::row(
                row,
                [
                    ("group", Value::from(&*group.label)),
                    ("library", Value::from(&*api.library)),
                    ("function", report.names.full(row.api as usize).into()),
                    ("symbol", Value::from(&*api.symbol)),
                    (
                        "argument_correlation",
                        api.argument.as_ref().and_then(|argument| argument.correlation).into(),
                    ),
                ],
            )?;
            map.values_mut().for_each(|value| name_threads(report, value));
            rows.push(map);
        }
        let columns = [
            "group",
            "library",
            "function",
            "symbol",
            "calls",
            "time_ns",
            "sampled",
            "p50_ns",
            "p90_ns",
            "p99_ns",
            "p999_ns",
            "p9999_ns",
            "max_ns",
            "tail_ratio",
            "calls_above_p99",
            "above_p99",
            "threads_above_p99",
            "argument_correlation",
        ];
        Ok(vec![Rows { name: "tails", columns: columns.into(), rows }])
    }
}

const BY_SIZE: (&str, &str) = (
    "long = large",
    "rank correlation of how long calls took and what they were asked to do, of all threads' calls of the function: near 1, its long calls are the large ones",
);

/// Whether the long calls are the large ones: `0.97`.
fn by_size(report: &Report, row: &TailRow) -> Option<String> {
    let argument = report.analysis.apis[row.api as usize].argument.as_ref()?;
    argument.correlation.map(|correlation| format!("{correlation:.2}"))
}

/// `futex ≤12 ms, write ≤30 µs`.
fn syscalls(row: &TailRow) -> String {
    const NAMED: usize = 2;
    let named = row.syscalls.iter().take(NAMED);
    let named: Vec<String> =
        named.map(|call| format!("{} ≤{}", call.syscall, duration(call.max_ns.0))).collect();
    named.join(", ")
}

/// `4712 ×3 of 8`.
fn holders(report: &Report, row: &TailRow) -> String {
    let Some(most) = row.threads.first() else { return String::new() };
    let tid = report.analysis.threads[most.thread as usize].tid;
    let others = match row.threads_above_p99 {
        1 => String::new(),
        threads => format!(", {threads} threads"),
    };
    format!("{tid} ×{}{others}", count(most.calls_above_p99))
}
