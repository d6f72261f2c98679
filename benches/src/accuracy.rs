//! How near estimates are to what is found where every call is timed, for durations of several kinds.
//!
//! No two runs of a program take the same time, so each is compared with what it knows of its own calls
//! first, and then estimates of totals with the median of the runs in which all were timed. What others
//! took of the processor meanwhile is left out: it is in every call that is timed, and is not what a call
//! takes.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::bench::Bench;
use crate::programs::gcc;
use crate::report::{Figure, Report};

const PART: &str = "accuracy";
/// Kinds of `tests/programs/script.c`, with threads and calls of each thread.
const KINDS: [(&str, &str, &str, &str); 7] = [
    ("all alike", "even", "1", "400000"),
    ("growing to eightfold", "drift", "1", "300000"),
    ("in bursts, 20 times as long", "bursts", "1", "400000"),
    ("one in ten 10 times as long", "bimodal", "1", "400000"),
    ("one in 128, 33 times as long, at a period", "periodic", "1", "400000"),
    ("Pareto's, of infinite variance", "heavy", "1", "200000"),
    ("three threads, up to three times as long", "threads", "3", "200000"),
];
/// Percent of an API's total, and percent of the runs that may be further off.
const NEAR: f64 = 5.0;
const BAR: f64 = 5.0;
const RUNS: u32 = 60;
/// A share of 5 % is not told from fewer.
const LEAST_RUNS: u32 = 40;
/// Programs run for each of those, at most: others may have the processor.
const MOST_TRIES: u32 = 3;
/// Most of the time that others may have.
const MOST_TAKEN: f64 = 0.02;
/// The ratio of two durations in buckets of a histogram that are neighbours, at most.
const BUCKET: f64 = 1.13;

/// What a report says of the calls.
struct Said {
    /// The total, as a multiple of what the program knows.
    ratio: f64,
    /// As a multiple of what the program knows; `None` where it is not known.
    p999_ratio: Option<f64>,
}

pub(crate) fn measure(bench: &Bench, report: &mut Report) -> Result<()> {
    let reporter = bench.lib.with_file_name("chase-report");
    let program = build(&bench.directory(PART)?)?;
    let mut of_all_kinds = Vec::new();
    for (what, kind, threads, calls) in KINDS {
        let (mut adaptive, mut all) = (Vec::new(), Vec::new());
        let (mut p999, mut p999_all, mut unknown) = (Vec::new(), Vec::new(), 0.0);
        let runs = bench.count(RUNS, LEAST_RUNS);
        for _ in 0..runs * MOST_TRIES {
            if adaptive.len().min(all.len()) >= runs as usize {
                break;
            }
            let run = |timing| said(bench, &reporter, &program, [kind, threads, calls], timing);
            let [estimated, timed] = [run("adaptive")?, run("all")?];
            if let Some(said) = estimated {
                adaptive.push(said.ratio);
                match said.p999_ratio {
                    Some(ratio) => p999.push(ratio),
                    None => unknown += 1.0,
                }
            }
            if let Some(said) = timed {
                all.push(said.ratio);
                p999_all.extend(said.p999_ratio);
            }
        }
        if adaptive.is_empty() || all.is_empty() {
            report.skipped(PART, what, "others had the processor in every run");
            continue;
        }
        let percent = |ratios: &[f64], whole: f64| -> Vec<f64> {
            ratios.iter().map(|ratio| 100.0 * (ratio / whole - 1.0)).collect()
        };
        let truth = median(&all);
        let (adaptive, all, of_program) =
            (percent(&adaptive, truth), percent(&all, truth), percent(&[truth], 1.0));
        of_all_kinds.extend_from_slice(&adaptive);
        report.measured(Figure {
            part: PART,
            what: format!("{what}: runs more than {NEAR} % off"),
            unit: "%",
            bar: None,
            values: vec![off(&adaptive)],
            details: vec![
                ("error", "%", adaptive),
                ("all: runs", "%", vec![off(&all)]),
                ("all: error", "%", all),
                ("all ÷ what the program knows: error", "%", of_program),
            ],
        });
        if p999.is_empty() || p999_all.is_empty() {
            report.skipped(PART, what, "p99.9 was never known");
            continue;
        }
        let far = |ratios: &[f64]| {
            let is_far = |ratio: &&f64| !(1.0 / BUCKET..BUCKET).contains(*ratio);
            100.0 * ratios.iter().filter(is_far).count() as f64 / ratios.len() as f64
        };
        report.measured(Figure {
            part: PART,
            what: format!("{what}: p99.9 known, and more than a bucket off"),
            unit: "%",
            bar: Some(BAR),
            values: vec![far(&p999)],
            details: vec![
                ("÷ what the program knows", "", p999),
                ("unknown", "runs", vec![unknown]),
                ("all: runs", "%", vec![far(&p999_all)]),
            ],
        });
    }
    if !of_all_kinds.is_empty() {
        report.measured(Figure {
            part: PART,
            what: format!("all kinds: runs more than {NEAR} % off"),
            unit: "%",
            bar: Some(BAR),
            values: vec![off(&of_all_kinds)],
            details: vec![("runs", "", vec![of_all_kinds.len() as f64])],
        });
    }
    Ok(())
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[sorted.len() / 2]
}

/// Percent of runs whose `errors`, in percent, are large.
fn off(errors: &[f64]) -> f64 {
    let far = errors.iter().filter(|error| error.abs() > NEAR).count();
    100.0 * far as f64 / errors.len() as f64
}

/// The program, with the library whose calls it makes beside it.
fn build(directory: &Path) -> Result<PathBuf> {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/programs");
    let source = |name: &str| sources.join(name).display().to_string();
    gcc(directory, &["-shared", "-fPIC", "-o", "libscript.so", &source("libscript.c")])?;
    let libraries = ["-L.", "-lscript", "-Wl,-rpath,$ORIGIN", "-lm", "-pthread"];
    gcc(directory, &[&[source("script.c").as_str(), "-o", "script"], &libraries[..]].concat())?;
    Ok(directory.join("script"))
}

/// What a report says after a run; `None` if others had the processor for long in it: meanwhile, calls go
/// on in the program's own view, but not in that of an estimate.
fn said(
    bench: &Bench,
    reporter: &Path,
    program: &Path,
    script: [&str; 3],
    timing: &str,
) -> Result<Option<Said>> {
    let (output, told) = (bench.fresh(), bench.fresh());
    let status = Command::new(program)
        .args(script)
        .arg(&told)
        .env("LD_PRELOAD", &bench.lib)
        .env("CHASE_OUTPUT", &output)
        .env("CHASE_SYSCALLS", "off")
        .env("CHASE_TIMING", timing)
        .status()
        .with_context(|| format!("starting {}", program.display()))?;
    if !status.success() {
        bail!("{} failed under chase", program.display());
    }
    let text = std::fs::read_to_string(&told).context("reading what the program tells")?;
    let number = |what: &str| -> Result<f64> {
        let line = text.lines().find_map(|line| line.strip_prefix(what)?.strip_prefix(' '));
        Ok(line.with_context(|| format!("the program does not tell {what}"))?.trim().parse()?)
    };
    let (total, taken) = (number("total_ns")?, number("taken_ns")?);
    let is_alone = number("preempted")? == 0.0 && taken <= MOST_TAKEN * total;
    let shown = Command::new(reporter).args(["apis", "--json"]).arg(&output).output()?;
    let document: Value = serde_json::from_slice(&shown.stdout).context("reading the report")?;
    let _ = std::fs::remove_dir_all(&output);
    let rows = document["apis"].as_array().context("a report without apis")?;
    let row = rows.iter().find(|row| row.to_string().contains("script_spin"));
    let row = row.context("a report without the calls")?;
    let of_others = if timing == "all" { taken } else { 0.0 };
    let ratio = (number_in(row, "self_ns").context("no self time")? - of_others) / (total - taken);
    let p999 = number("p999_ns")?;
    let p999_ratio = number_in(row, "p999_ns").map(|ns| ns / p999);
    Ok(is_alone.then_some(Said { ratio, p999_ratio }))
}

/// Nanoseconds; numbers that may not fit are strings in the reports.
fn number_in(row: &Value, what: &str) -> Option<f64> {
    let value = row.get(what).or_else(|| row.get("measures")?.get(what))?;
    value.as_f64().or_else(|| value.as_str()?.parse().ok())
}
