//! Time and calls of each library function.

use chase_analyzer::{Analysis, ApiRow, ArgumentRow, Measures, TextRow, WaitCause};
use serde_json::Value;

use super::waiting::{self, PREEMPTED};
use super::{
    PERCENT, QUANTILES, SELF, Show, TIMED, TOTAL, calls, counted, estimates, left_out, legend,
    longest_of, of_call, self_share, self_time, share, total_time,
};
use super::{sites, sorting};
use crate::args::{ApiFilter, LibFilter, SortArg, matches};
use crate::machine::{self, MEASURES, OFF_CPU, ON_CPU, Rows};
use crate::names::Names;
use crate::report::Report;
use crate::terminal::{Align, Cell, Look, Table, Terminal, amount, count, elapsed, percent};

pub(super) struct Apis<'a> {
    pub(super) lib: &'a LibFilter,
    pub(super) api: &'a ApiFilter,
    pub(super) sort: SortArg,
}

impl Apis<'_> {
    /// Rows with their numbers in the analysis.
    fn rows<'r>(&self, report: &'r Report) -> Vec<(usize, &'r ApiRow)> {
        let (analysis, names) = (&report.analysis, &report.names);
        let wanted = |(number, _): &(usize, &ApiRow)| {
            is_wanted(analysis, names, *number, self.lib, self.api)
        };
        let mut rows: Vec<_> = report.analysis.apis.iter().enumerate().filter(wanted).collect();
        let name = |row: &(usize, &ApiRow)| names.short(row.0).to_owned();
        sorting::sort(&mut rows, self.sort, |row| &row.1.measures, name);
        rows
    }
}

/// Whether both filters let a function pass.
pub(super) fn is_wanted(
    analysis: &Analysis,
    names: &Names,
    number: usize,
    lib: &LibFilter,
    api: &ApiFilter,
) -> bool {
    let Some(row) = analysis.apis.get(number) else { return false };
    let path = analysis.objects.get(row.object as usize).map_or("", |object| &object.path);
    let function = [&*row.symbol, names.short(number), names.bare(number), names.full(number)];
    matches(&lib.libs, &[&row.library, path]) && matches(&api.apis, &function)
}

impl Show for Apis<'_> {
    const NAME: &'static str = "apis";

    fn text(&self, report: &Report, terminal: Terminal, top: usize) -> anyhow::Result<String> {
        let rows = self.rows(report);
        let mut table = Table::new([
            ("Function", Align::Name),
            ("Library", Align::Name),
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
            ("asks for", Align::Text),
            ("waits for", Align::Text),
        ])
        .only_if(rows.iter().take(top).any(|(_, row)| row.argument.is_some()), "asks for")
        .only_if(waiting::is_measured(report), waiting::heading(report))
        .only_if(waiting::is_measured(report), PREEMPTED)
        .may_drop(["p99", "asks for", "max", "waits for", "total", PREEMPTED, "p50"]);
        for &(number, row) in rows.iter().take(top) {
            let measures = &row.measures;
            table.row([
                report.names.short(number).into(),
                Cell::new(report.names.object(row.object), Look::Faint),
                self_share(report, measures).into(),
                self_time(measures).into(),
                total_time(measures).into(),
                share(report, measures.wait_ns).into(),
                waiting::preempted(report, measures).into(),
                calls_and_timed(measures).into(),
                of_call(measures.p50_ns).into(),
                of_call(measures.p99_ns).into(),
                of_call(measures.p999_ns).into(),
                longest_of(measures).into(),
                row.argument.as_ref().map(asks_for).unwrap_or_default().into(),
                waits_for(row).into(),
            ]);
        }
        let mut out = table.render(terminal);
        out.push_str(&left_out(rows.len(), top, "functions"));
        out.push_str(&texts(report, terminal, rows.iter().take(top).copied(), top));
        out.push_str(&sites::table(report, terminal, &rows, top));
        let mut terms = vec![PERCENT, SELF, TOTAL];
        if waiting::is_measured(report) {
            terms.extend(waiting::legend(report));
        }
        if rows.iter().take(top).any(|(_, row)| row.argument.is_some()) {
            terms.push(ASKS_FOR);
        }
        terms.extend([("waits for", "by the function's name, not measured"), QUANTILES]);
        terms.extend(counted(report));
        terms.extend(estimates(report).map(|estimate| [estimate, TIMED]).into_iter().flatten());
        out.push_str(&legend(terminal, &terms));
        Ok(out)
    }

    fn tables(&self, report: &Report, top: usize) -> anyhow::Result<Vec<Rows>> {
        let row = |(number, row): (usize, &ApiRow)| {
            let function = Value::from(report.names.full(number));
            let mut map = machine::row(row, [("api", number.into()), ("function", function)])?;
            if !row.places.is_empty() {
                map.insert("places".to_owned(), sites::json(report, &row.places)?);
            }
            anyhow::Ok(map)
        };
        let rows = self.rows(report).into_iter().take(top).map(row);
        let columns = ["library", "function", "symbol", "version", "waits_for"];
        let columns = [&columns[..], &MEASURES, &ON_CPU, &OFF_CPU].concat();
        Ok(vec![Rows { name: "apis", columns, rows: rows.collect::<Result<_, _>>()? }])
    }
}

/// How far off an estimate of the calls may be; of a function whose calls were not all timed, also how many
/// were.
fn calls_and_timed(measures: &Measures) -> String {
    let calls = match measures.calls_ci95_share() {
        Some(share) if share >= 0.0005 => format!("{} ±{}", calls(measures), percent(share)),
        _ => calls(measures),
    };
    if measures.samples_only() {
        format!("{calls} ({} timed)", count(measures.timed))
    } else {
        calls
    }
}

/// What the figures of [`asks_for`] are.
const ASKS_FOR: (&str, &str) = (
    "asks for",
    "mean and largest of the argument that says how much a call has to do; and its rank correlation with the durations: near 1, long calls are large ones",
);

/// `4.1 kB ≤64 kB, 0.97`.
fn asks_for(argument: &ArgumentRow) -> String {
    let Some(mean) = argument.mean else { return "no limit".to_owned() };
    let correlation = argument.correlation.map(|correlation| format!(", {correlation:.2}"));
    let value = |value: f64| amount(argument.unit, value);
    format!("{} ≤{}{}", value(mean), value(argument.max as f64), correlation.unwrap_or_default())
}

/// The table of the texts that long calls were passed; empty if there are none.
fn texts<'r>(
    report: &'r Report,
    terminal: Terminal,
    rows: impl Iterator<Item = (usize, &'r ApiRow)>,
    top: usize,
) -> String {
    let mut texts: Vec<(usize, &TextRow)> =
        rows.flat_map(|(number, row)| row.texts.iter().map(move |text| (number, text))).collect();
    if texts.is_empty() {
        return String::new();
    }
    texts.sort_by_key(|(number, text)| {
        (text.text.is_none(), std::cmp::Reverse(text.total_ns), *number)
    });
    let mut table = Table::new([
        ("For", Align::Name),
        ("Function", Align::Name),
        ("long calls", Align::Number),
        ("total", Align::Number),
        ("max", Align::Number),
    ]);
    for &(number, row) in texts.iter().take(top) {
        table.row([
            row.text.as_deref().map_or("(others)".into(), end_of).into(),
            report.names.short(number).into(),
            count(row.calls).into(),
            elapsed(row.total_ns.0).into(),
            row.max_ns.map(|max| elapsed(max.0)).unwrap_or_default().into(),
        ]);
    }
    let left_out = left_out(texts.len(), top, "paths and names");
    let heading = terminal.paint(Look::Strong, "Paths and names of hosts that long calls were for");
    format!("\n{heading}\n{}{left_out}", table.render(terminal))
}

/// The end of a long path, which says more than its beginning.
fn end_of(text: &str) -> String {
    const MOST: usize = 60;
    let count = text.chars().count();
    match count {
        ..=MOST => text.to_owned(),
        _ => format!("…{}", text.chars().skip(count - MOST).collect::<String>()),
    }
}

fn waits_for(row: &ApiRow) -> String {
    row.waits_for.map(cause).unwrap_or_default()
}

/// A cause of waiting, as the analyzer writes it.
pub(crate) fn cause(cause: WaitCause) -> String {
    let cause = serde_json::to_value(cause).ok();
    cause.as_ref().and_then(Value::as_str).unwrap_or_default().to_owned()
}
