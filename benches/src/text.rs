//! The figures for people: a table for the terminal, a page for the documentation.

use std::collections::HashMap;
use std::fmt::Write as _;

use comfy_table::{CellAlignment, Table, presets};

use crate::machine::Machine;
use crate::report::{Bar, Beyond, Detail, Report, Row};
use crate::turns::Spread;

const HEADER: [&str; 6] = ["What", "Median", "Quartiles", "Bar", "Met", "From"];
const INTRODUCTION: &str = "\
Written by `cargo xtask bench --peers --write-docs`, or part by part with `--only`: each part says on which machine it was
measured. [cost.md](cost.md) says where the cost comes from.

Everything is measured in turns (bare, chase, bare, chase, ...), so that a machine that slows down slows all; a figure is
the median over the turns, of the ratio or difference within each, with its quartiles; a mean is of such figures.
`adaptive`, `all` and `count` are values of `CHASE_TIMING`. A bar is what a median has to meet. What is printed and written
by real programs has been compared with the bare run's in each run. Where two halves of the rounds differ by more than a bar allows,
the machine was too noisy: the row has none.

Other tools do what they do, which is not always the same: `uftrace record -l` records the calls that chase records, each
with its time; `uftrace record` and `ltrace` those of the program itself only; uprobes are on the functions that are named.
`strace -c`, `perf trace -s` and bpftrace on `raw_syscalls` see system calls (bpftrace those of the whole machine). Their
start and end, which has a row of its own, is in the wall times. A run that took 100 times as long as the bare one (at
least 10 s, at most 60 s) was stopped, and shows as `>` (or `<`). A tool that saw no call at all counts as failed.";
/// What begins a part of the page.
const SECTION: &str = "\n## ";
const YES: &str = "yes";
const NO: &str = "NO";
const LEGEND: &str = "Runs in turns; × is a ratio. \
    Two reads: two time stamp reads (rdtsc) instead of the call.";

/// The table, a legend, and how many bars are met.
pub(crate) fn table(report: &Report) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header([""].iter().chain(&HEADER));
    for row in &report.rows {
        table.add_row([row.part.clone()].into_iter().chain(cells(row)));
    }
    for column in 2..5 {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    format!("{table}\n{LEGEND}\n{}\n", verdict(report))
}

/// One row, as it comes.
pub(crate) fn line(row: &Row) -> String {
    let cells = cells(row);
    let [what, median, .., met, from] = cells.each_ref().map(String::as_str);
    let why = if row.value.is_none() { from } else { "" };
    let words = [what, median, met, why].into_iter().filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join("  ")
}

/// The same as Markdown, with a table for each part. Parts of the page `before` that were not measured now stay as they were, and
/// all come in the order of `parts`.
pub(crate) fn page(
    report: &Report,
    machine: &Machine,
    effort: f64,
    (before, parts): (&str, &[String]),
) -> String {
    let mut sections: HashMap<&str, String> = before
        .split(SECTION)
        .skip(1)
        .filter_map(|section| Some((section.lines().next()?, section.trim_end().to_owned())))
        .collect();
    for rows in report.rows.chunk_by(|a, b| a.part == b.part) {
        let part = rows.first().map_or("", |row| row.part.as_str());
        let mut section = format!("{part}\n\n{machine}\nEffort {effort}.\n\n");
        // Writing to a String can't fail.
        let _ =
            write!(section, "| {} |\n| --- | ---: | ---: | ---: | --- | --- |", HEADER.join(" | "));
        for row in rows {
            let cells = cells(row).map(|cell| cell.replace('|', "\\|"));
            let _ = write!(section, "\n| {} |", cells.join(" | "));
        }
        sections.insert(part, section);
    }
    let sections: String = parts
        .iter()
        .filter_map(|part| Some(format!("{SECTION}{}\n", sections.get(part.as_str())?)))
        .collect();
    let count = |met: &str| sections.matches(&format!(" | {met} | ")).count();
    let (met, missed) = (count(YES), count(NO));
    let all = met + missed;
    format!(
        "# Benchmarks\n\n{INTRODUCTION}\n\n{LEGEND}\n\n**{met} of {all} bars met.**\n{sections}"
    )
}

fn verdict(report: &Report) -> String {
    let count = |which: fn(&Row) -> bool| report.rows.iter().filter(|row| which(row)).count();
    let bars = count(|row| row.bar.is_some() || row.met.is_some());
    let met = count(|row| row.met == Some(true));
    let failed = count(|row| row.value.is_none() && row.met.is_some());
    format!("{met} of {bars} bars met, {failed} measurements failed.")
}

/// A row under [`HEADER`].
fn cells(row: &Row) -> [String; 6] {
    let number = |n: f64| format!("{} {}", digits(n), row.unit);
    let quartiles = |v: Spread| format!("{} – {}", digits(v.low), digits(v.high));
    let bound = |beyond| match beyond {
        Beyond::Above(n) => format!("> {}", number(n)),
        Beyond::Below(n) => format!("< {}", number(n)),
    };
    let bar = |bar| match bar {
        Bar::AtMost(n) => format!("≤ {}", number(n)),
        Bar::AtLeast(n) => format!("≥ {}", number(n)),
    };
    let beyond = || row.beyond.map_or_else(String::new, bound);
    [
        row.what.clone(),
        row.value.map_or_else(beyond, |v| number(v.median)),
        row.value.map_or_else(String::new, quartiles),
        row.bar.map_or_else(String::new, bar),
        row.met.map_or("", |met| if met { YES } else { NO }).to_owned(),
        from(row),
    ]
}

fn from(row: &Row) -> String {
    let detail = |d: &Detail| format!("{} {} {}", d.name, digits(d.value.median), d.unit);
    let details: Vec<String> = row.details.iter().map(detail).collect();
    row.why_not.clone().unwrap_or_else(|| details.join(", "))
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
    use crate::report::Figure;

    fn report() -> Report {
        let mut report = Report::default();
        let figure = |what: &str, value, bar| Figure {
            part: "calls",
            what: what.to_owned(),
            unit: "×",
            bar: Some(bar),
            values: vec![value],
            details: vec![("bare", "ns", vec![2.5])],
        };
        report.measured(figure("a|b", 1.5, 1.6));
        report.measured_at_least(figure("c", 0.5, 0.97));
        report.failed("real", "d", None, "was killed by signal 11");
        report.skipped("real", "e", "not installed");
        report.beyond("real", "f", "×", Beyond::Above(100.0), "stopped after 30 s");
        report
    }

    #[test]
    fn the_table_says_what_is_met_and_what_is_missing() {
        let table = table(&report());
        for expected in [
            "1.50 ×  1.50 – 1.50  ≤ 1.60 ×  yes  bare 2.50 ns",
            "≥ 0.97 ×  NO",
            "NO   failed: was killed by signal 11",
            "skipped: not installed",
            "> 100 ×",
            "1 of 3 bars met, 1 measurements failed.",
        ] {
            assert!(table.contains(expected), "{expected}: {table}");
        }
    }

    #[test]
    fn the_page_has_a_table_for_each_part() {
        let page = page(&report(), &Machine::default(), 0.1, ("", &parts()));
        assert!(page.contains("\n## calls\n") && page.contains("\n## real\n"), "{page}");
        assert!(page.contains("| a\\|b | 1.50 × |"), "{page}");
        assert!(page.contains("| f | > 100 × |  |  |  | stopped after 30 s |"), "{page}");
    }
    fn parts() -> [String; 3] {
        ["calls", "memory", "real"].map(str::to_owned)
    }

    #[test]
    fn parts_that_were_not_measured_stay() {
        let before = "# Benchmarks\n\n**9 of 9 bars met.**\n\n## calls\n\nold\n\n## memory\n\n| m | 1 B |  | ≤ 2 B | yes | x |\n";
        let page = page(&report(), &Machine::default(), 0.1, (before, &parts()));
        let sections: Vec<&str> = page.lines().filter(|line| line.starts_with("## ")).collect();
        assert_eq!(sections, ["## calls", "## memory", "## real"]);
        assert!(page.contains("| m | 1 B |") && !page.contains("old"), "{page}");
        assert!(page.contains("**2 of 4 bars met.**"), "{page}");
    }
}
