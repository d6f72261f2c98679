//! The figures, as a table and as JSON.

use std::fmt::Write as _;

use comfy_table::{CellAlignment, Table, presets};
use serde::Serialize;

use crate::bench::Bench;
use crate::turns::Spread;

/// All figures so far.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Report {
    rows: Vec<Row>,
}

/// One figure, or why there is none.
#[derive(Debug, Serialize)]
struct Row {
    part: String,
    what: String,
    /// Unit of `value` and `bar`.
    unit: &'static str,
    value: Option<Spread>,
    /// The median must not be above this.
    bar: Option<f64>,
    met: Option<bool>,
    /// What the value was calculated from, with units.
    details: Vec<Detail>,
    /// Why it was not measured.
    why_not: Option<String>,
}

#[derive(Debug, Serialize)]
struct Detail {
    name: &'static str,
    unit: &'static str,
    value: Spread,
}

/// A figure that has been measured.
pub(crate) struct Figure {
    pub(crate) part: &'static str,
    pub(crate) what: String,
    pub(crate) unit: &'static str,
    pub(crate) bar: Option<f64>,
    pub(crate) values: Vec<f64>,
    /// Name, unit and values of what it was calculated from.
    pub(crate) details: Vec<(&'static str, &'static str, Vec<f64>)>,
}

/// Where the figures come from.
#[derive(Serialize)]
pub(crate) struct WithHost<'a> {
    cpu: String,
    cpus: usize,
    kernel: String,
    lib: String,
    rows: &'a [Row],
}

impl Report {
    pub(crate) fn measured(&mut self, figure: Figure) {
        let Some(value) = Spread::of(&figure.values) else {
            return self.failed(figure.part, &figure.what, figure.bar, "no value");
        };
        let detail = |(name, unit, values): (_, _, Vec<f64>)| {
            Spread::of(&values).map(|value| Detail { name, unit, value })
        };
        self.rows.push(Row {
            part: figure.part.to_owned(),
            what: figure.what,
            unit: figure.unit,
            value: Some(value),
            bar: figure.bar,
            met: figure.bar.map(|bar| value.median <= bar),
            details: figure.details.into_iter().filter_map(detail).collect(),
            why_not: None,
        });
    }

    /// A measurement went wrong, which is as bad as a missed bar.
    pub(crate) fn failed(&mut self, part: &str, what: &str, bar: Option<f64>, why: &str) {
        self.missing(part, what, bar, Some(false), format!("failed: {why}"));
    }

    /// Something that can't be measured here.
    pub(crate) fn skipped(&mut self, part: &str, what: &str, why: &str) {
        self.missing(part, what, None, None, format!("skipped: {why}"));
    }

    pub(crate) fn all_bars_met(&self) -> bool {
        self.rows.iter().all(|row| row.met != Some(false))
    }

    /// With what one must know to compare it with another.
    pub(crate) fn with_host(&self, bench: &Bench) -> WithHost<'_> {
        let cpuinfo = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let model = cpuinfo.lines().find_map(|line| line.strip_prefix("model name"));
        let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        WithHost {
            cpu: model.unwrap_or_default().trim_start_matches([' ', '\t', ':']).to_owned(),
            cpus: std::thread::available_parallelism().map_or(0, usize::from),
            kernel: kernel.trim().to_owned(),
            lib: bench.lib.display().to_string(),
            rows: &self.rows,
        }
    }

    /// The table, a legend, and how many bars are met.
    pub(crate) fn table(&self) -> String {
        let mut table = Table::new();
        table.load_style(presets::NOTHING);
        table.set_header(["", "What", "Median", "Quartiles", "Bar", "Met", "From"]);
        for row in &self.rows {
            let number = |n: f64| format!("{} {}", digits(n), row.unit);
            let quartiles = |v: Spread| format!("{} – {}", digits(v.low), digits(v.high));
            let met = row.met.map_or("", |met| if met { "yes" } else { "NO" });
            table.add_row([
                row.part.clone(),
                row.what.clone(),
                row.value.map_or_else(String::new, |v| number(v.median)),
                row.value.map_or_else(String::new, quartiles),
                row.bar.map_or_else(String::new, |bar| format!("≤ {}", number(bar))),
                met.to_owned(),
                row.from(),
            ]);
        }
        for column in 2..5 {
            if let Some(column) = table.column_mut(column) {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        let bars = self.rows.iter().filter(|row| row.bar.is_some()).count();
        let met = self.rows.iter().filter(|row| row.met == Some(true)).count();
        let failed = self.rows.iter().filter(|r| r.value.is_none() && r.met.is_some()).count();
        let mut text = format!("{table}\n");
        // Writing to a String can't fail.
        let _ = writeln!(
            text,
            "Runs in turns; × is a ratio. Two reads: two time stamp reads (rdtsc) instead of the call.\n\
             {met} of {bars} bars met, {failed} measurements failed."
        );
        text
    }

    fn missing(
        &mut self,
        part: &str,
        what: &str,
        bar: Option<f64>,
        met: Option<bool>,
        why: String,
    ) {
        self.rows.push(Row {
            part: part.to_owned(),
            what: what.to_owned(),
            unit: "",
            value: None,
            bar,
            met,
            details: Vec::new(),
            why_not: Some(why),
        });
    }
}

impl Row {
    fn from(&self) -> String {
        let detail = |d: &Detail| format!("{} {} {}", d.name, digits(d.value.median), d.unit);
        let details: Vec<String> = self.details.iter().map(detail).collect();
        self.why_not.clone().unwrap_or_else(|| details.join(", "))
    }
}

/// Three significant digits, and all of those before the point.
fn digits(number: f64) -> String {
    let decimals = match number.abs() {
        n if n >= 99.95 => 0,
        n if n >= 9.995 => 1,
        _ => 2,
    };
    let text = format!("{number:.decimals$}");
    // What is rounded to nothing has no sign.
    if text == "-0.00" { "0.00".to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure(values: &[f64], bar: Option<f64>) -> Figure {
        let (what, details) = ("a".to_owned(), vec![("bare", "ns", vec![2.5])]);
        Figure { part: "calls", what, unit: "×", bar, values: values.to_vec(), details }
    }

    #[test]
    fn a_bar_is_met_by_the_median_and_missed_by_a_failure() {
        let mut report = Report::default();
        report.measured(figure(&[1.0, 1.6, 9.0], Some(1.6)));
        report.skipped("calls", "uftrace", "not installed");
        assert!(report.all_bars_met());
        let table = report.table();
        assert!(table.contains("1 of 1 bars met, 0 ") && table.contains("skipped: not installed"));

        report.measured(figure(&[1.0, 1.61, 1.61], Some(1.6)));
        assert!(!report.all_bars_met());

        let mut failing = Report::default();
        failing.failed("calls", "b", Some(1.6), "killed by signal 11");
        assert!(!failing.all_bars_met());
        assert!(failing.table().contains("0 of 1 bars met, 1 "));
    }

    #[test]
    fn a_figure_without_values_is_a_failure() {
        let mut report = Report::default();
        report.measured(figure(&[], Some(1.6)));
        assert!(!report.all_bars_met());
    }
}
