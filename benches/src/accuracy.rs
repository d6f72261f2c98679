//! How near estimates are to what a program knows of its own calls, for durations of several kinds.

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
const RUNS: u32 = 40;

pub(crate) fn measure(bench: &Bench, report: &mut Report) -> Result<()> {
    let reporter = bench.lib.with_file_name("chase-report");
    let program = build(&bench.directory(PART)?)?;
    for (what, kind, threads, calls) in KINDS {
        let mut errors = [Vec::new(), Vec::new()];
        for _ in 0..bench.count(RUNS, 3) {
            for (timing, errors) in ["adaptive", "all"].into_iter().zip(&mut errors) {
                let arguments = [kind, threads, calls];
                errors.extend(error(bench, &reporter, &program, arguments, timing)?);
            }
        }
        let [adaptive, all] = errors;
        if adaptive.is_empty() || all.is_empty() {
            report.skipped(PART, what, "the program was preempted in every run");
            continue;
        }
        let off = |errors: &[f64]| {
            let far = errors.iter().filter(|error| error.abs() > NEAR).count();
            100.0 * far as f64 / errors.len() as f64
        };
        report.measured(Figure {
            part: PART,
            what: format!("{what}: runs more than {NEAR} % off"),
            unit: "%",
            bar: Some(BAR),
            values: vec![off(&adaptive)],
            details: vec![
                ("error", "%", adaptive),
                ("all: runs", "%", vec![off(&all)]),
                ("all: error", "%", all),
            ],
        });
    }
    Ok(())
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

/// By how many percent a report is off; `None` if the program was preempted: while it waits for a
/// processor, its calls go on in its own view, but not in that of an estimate.
fn error(
    bench: &Bench,
    reporter: &Path,
    program: &Path,
    script: [&str; 3],
    timing: &str,
) -> Result<Option<f64>> {
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
    let (preempted, truth) = (number("preempted")?, number("total_ns")?);
    let shown = Command::new(reporter).args(["apis", "--json"]).arg(&output).output()?;
    let document: Value = serde_json::from_slice(&shown.stdout).context("reading the report")?;
    let _ = std::fs::remove_dir_all(&output);
    let rows = document["apis"].as_array().context("a report without apis")?;
    let row = rows.iter().find(|row| row.to_string().contains("script_spin"));
    let found = self_ns(row.context("a report without the calls")?).context("no self time")?;
    Ok((preempted == 0.0).then(|| 100.0 * (found / truth - 1.0)))
}

/// Nanoseconds; numbers that may not fit are strings in the reports.
fn self_ns(row: &Value) -> Option<f64> {
    let value = row.get("self_ns").or_else(|| row.get("measures")?.get("self_ns"))?;
    value.as_f64().or_else(|| value.as_str()?.parse().ok())
}
