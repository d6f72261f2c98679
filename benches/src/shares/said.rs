//! Shares as `chase-report` has them.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::{Shares, name_of};
use crate::bench::Bench;

/// Of the run that was recorded in `output`.
pub(super) fn shares(bench: &Bench, output: &Path) -> Result<Shares> {
    let document = document(bench, output, "libs")?;
    let on_cpu = &document["on_cpu"];
    let itself = name_of(&bench.lib.display().to_string());
    let mut objects = BTreeMap::new();
    let mut of_chase = 0.0;
    for row in on_cpu["objects"].as_array().context("a report without where the CPU was")? {
        let time = number(&row["on_cpu_ns"]).context("an object without a time")?;
        let name = name_of(row["path"].as_str().unwrap_or_default());
        if name == itself {
            of_chase += time;
        } else {
            *objects.entry(name).or_insert(0.0) += time;
        }
    }
    let samples = number(&on_cpu["samples"]).context("a report without samples")?;
    ensure!(samples > 0.0, "no samples were taken");
    Ok(Shares::from_sums(objects, of_chase, samples))
}

/// Processor time of threads, by process and thread.
pub(super) fn threads(bench: &Bench, output: &Path) -> Result<BTreeMap<(u32, u32), f64>> {
    let document = document(bench, output, "threads")?;
    let rows = document["threads"].as_array().context("a report without threads")?;
    let thread = |row: &Value| -> Option<((u32, u32), f64)> {
        let id = |name: &str| u32::try_from(row[name].as_u64()?).ok();
        Some(((id("pid")?, id("tid")?), number(&row["on_cpu_ns"])?))
    };
    let mut times = BTreeMap::new();
    for row in rows {
        let (id, ns) = thread(row).context("a thread without a time")?;
        // A process may have several images, each with a row.
        *times.entry(id).or_insert(0.0) += ns;
    }
    Ok(times)
}

fn document(bench: &Bench, output: &Path, view: &str) -> Result<Value> {
    let mut reporter = Command::new(bench.lib.with_file_name("chase-report"));
    reporter.args([view, "--json", "--run", "all"]).arg(output);
    let shown = reporter.output().context("starting chase-report")?;
    serde_json::from_slice(&shown.stdout).context("reading the report")
}

/// Numbers that may not fit are strings.
fn number(value: &Value) -> Option<f64> {
    value.as_f64().or_else(|| value.as_str()?.parse().ok())
}
