//! Two sides compared: recordings before and after a change, or two functions of one.

mod chart;
mod tables;

use std::fmt::Write as _;

use anyhow::Context as _;
use chase_analyzer::{ApiName, Basis, WaitSource};
use chase_symbols::{demangle, shorten};
use serde_json::{Value, json};

use super::{legend, words, wrap};
use crate::args::{Cli, CompareArgs};
use crate::compare::{Compared, Side};
use crate::machine::{self, Rows};
use crate::terminal::{Look, Terminal, clean, clean_json};

/// Everything that `compare` asks for, as text; draws the chart if one is wanted.
pub(crate) fn show(
    cli: &Cli,
    arguments: &CompareArgs,
    compared: &Compared,
    terminal: Terminal,
) -> anyhow::Result<String> {
    let top = |default| match cli.output.top {
        Some(0) => usize::MAX,
        Some(top) => top,
        None => default,
    };
    if let Some(path) = &arguments.chart {
        chart::draw(compared, path, top(chart::TOP))?;
    }
    if cli.output.json {
        let document = json(compared, top(usize::MAX))?;
        return Ok(clean_json(serde_json::to_string_pretty(&document)? + "\n"));
    }
    if cli.output.csv {
        return machine::csv(&rows(compared, top(usize::MAX))?);
    }
    Ok(text(compared, terminal, top(super::DEFAULT_TOP)))
}

fn text(compared: &Compared, terminal: Terminal, top: usize) -> String {
    let mut out = heading(compared, terminal);
    if compared.is_pair {
        for row in &compared.comparison.apis {
            out.push('\n');
            out.push_str(&tables::detail(row, compared, terminal, top));
        }
    } else {
        out.push('\n');
        out.push_str(&tables::totals(&compared.comparison).render(terminal));
        out.push('\n');
        out.push_str(&tables::apis(&compared.comparison, terminal, top));
    }
    out.push_str(&legend(terminal, &terms(compared)));
    out
}

/// What A and B are, and what verdicts rest on.
fn heading(compared: &Compared, terminal: Terminal) -> String {
    let sources = compared.comparison.wait_sources;
    let mut out = String::new();
    let mut line = |letter: &str, of: &Side, source| {
        let waits = match source {
            WaitSource::Scheduler => "from the scheduler",
            WaitSource::Asked => "measured by the threads",
            WaitSource::Name => "by name",
            WaitSource::Mixed => "from different sources",
        };
        let letter = terminal.paint(Look::Strong, letter);
        let _ = writeln!(out, "{letter}  {}; waits {waits}", side(of));
    };
    match &compared.after {
        Some(after) => {
            line("A", &compared.before, sources.0);
            line("B", after, sources.1);
        }
        None => line("A and B in", &compared.before, sources.0),
    }
    let width = terminal.width.unwrap_or(100);
    let basis = wrap(words(basis(compared)), 0, 0, width.min(100));
    out + &terminal.paint(Look::Faint, &basis) + "\n"
}

/// `old.data: 3 runs of app --fast`.
pub(in crate::view) fn side(side: &Side) -> String {
    let paths: Vec<String> = side.paths.iter().map(|path| path.display().to_string()).collect();
    let runs = match side.runs.len() {
        1 => "1 run".to_owned(),
        runs => format!("{runs} runs"),
    };
    let others = match side.others {
        0 => String::new(),
        others => format!("; {others} of other commands left out"),
    };
    format!("{}: {runs} of {}{others}", clean(&paths.join(", ")), clean(&side.command))
}

pub(in crate::view) fn basis(compared: &Compared) -> &'static str {
    match (compared.comparison.basis, compared.after.is_some()) {
        (Basis::Ranks, _) => {
            "a change: below 5 % probable by chance, by the time per call of each run (rank test), and larger than any of the functions' is by chance in 19 of 20 comparisons"
        }
        (Basis::TooFewRuns, _) => {
            "too few runs to tell changes from noise: with four on each side they can be told"
        }
        (Basis::Distributions, true) => {
            "one recording each: a change is only told where the calls of both hardly overlap (the middle 90 % of them); how much runs differ by themselves is not known"
        }
        (Basis::Distributions, false) => {
            "one recording: a difference is only told where the calls of both hardly overlap (the middle 90 % of them)"
        }
    }
}

fn terms(compared: &Compared) -> Vec<(&'static str, &'static str)> {
    let mut terms = vec![
        ("per call", "mean time, with the library calls made inside"),
        ("p50, p99.9", "half, and 99.9 %, of the calls took no longer; within 6.25 %"),
    ];
    if compared.comparison.totals.syscalls.before.is_some() {
        terms.push(("syscalls", "system calls per call, with those made in library calls inside"));
    }
    if compared.comparison.basis == Basis::Ranks {
        terms.push((
            "p",
            "how probable a difference as large is by chance; of many functions, one in twenty has p < 0.05 by chance",
        ));
    }
    let several = compared.before.runs.len() > 1
        || compared.after.as_ref().is_some_and(|after| after.runs.len() > 1);
    if several {
        terms.push(("A, B", "the median over the runs of each side; --fail-if takes means"));
    }
    if compared.comparison.wait_sources.0 != compared.comparison.wait_sources.1 {
        terms.push(("wait", "not compared: one side's is measured, the other's guessed by name"));
    }
    terms
}

/// Short name of a function.
pub(in crate::view) fn function(name: &ApiName) -> String {
    shorten(&demangle(&name.symbol)).into_owned()
}

/// `one → other` where the sides differ.
fn both(before: Option<String>, after: Option<String>) -> String {
    match (before, after) {
        (Some(before), Some(after)) if before == after => before,
        (Some(before), Some(after)) => format!("{before} → {after}"),
        (before, after) => before.or(after).unwrap_or_default(),
    }
}

fn rows(compared: &Compared, top: usize) -> anyhow::Result<Rows> {
    let rows = compared.comparison.apis.iter().take(top).map(|row| {
        let name =
            |name: &Option<ApiName>| name.as_ref().map(|name| demangle(&name.symbol).into_owned());
        let functions = json!({"before": name(&row.before), "after": name(&row.after)});
        machine::row(row, [("function", functions)])
    });
    let rows = rows.collect::<Result<_, _>>()?;
    Ok(Rows { name: "apis", columns: tables::COLUMNS.to_vec(), rows })
}

fn json(compared: &Compared, top: usize) -> anyhow::Result<Value> {
    let side = |side: &Side| {
        let paths: Vec<String> = side.paths.iter().map(|path| path.display().to_string()).collect();
        json!({
            "paths": paths,
            "command": side.command,
            "runs": side.runs.len(),
            "other_runs": side.others,
        })
    };
    let comparison = &compared.comparison;
    let after = compared.after.as_ref().unwrap_or(&compared.before);
    let apis: Vec<Value> = rows(compared, top)?.rows.into_iter().map(Value::Object).collect();
    Ok(json!({
        "schema": machine::SCHEMA,
        "view": "compare",
        "before": side(&compared.before),
        "after": side(after),
        "basis": comparison.basis,
        "wait_sources": comparison.wait_sources,
        "totals": serde_json::to_value(&comparison.totals).context("cannot write the totals")?,
        "apis": apis,
    }))
}
