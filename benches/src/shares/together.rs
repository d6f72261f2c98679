//! One run that both watch: perf starts the program, with chase preloaded.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result};

use super::{Shares, name_of, perf, said};
use crate::bench::Bench;
use crate::companion::Watched;

/// Shares of objects and of threads.
pub(super) struct Both {
    pub(super) objects_of_perf: Shares,
    pub(super) objects_of_chase: Shares,
    pub(super) threads_of_perf: Shares,
    pub(super) threads_of_chase: Shares,
}

/// Runs `command` once.
pub(super) fn run(bench: &Bench, directory: &Path, command: &[String]) -> Result<Both> {
    let output = bench.fresh();
    let mut words = vec![
        "env".to_owned(),
        format!("LD_PRELOAD={}", bench.lib.display()),
        format!("CHASE_OUTPUT={}", output.display()),
        "CHASE_SYSCALLS=require".to_owned(),
    ];
    words.extend_from_slice(command);
    let samples_at = bench.fresh();
    let words = perf::recorded(&samples_at, perf::Of::All, &words);
    let samples = perf::samples(bench, directory, &words, &samples_at)?;
    let watched = Watched::in_directory(&output)?;
    watched.await_rows()?;
    let found = both(bench, &output, &samples);
    watched.end()?;
    let _ = std::fs::remove_dir_all(&output);
    found
}

fn both(bench: &Bench, output: &Path, samples: &[perf::Sample]) -> Result<Both> {
    let threads = said::threads(bench, output)?;
    // perf has watched the companion, too, and what has started the program.
    let is_recorded = |sample: &&perf::Sample| threads.keys().any(|(pid, _)| *pid == sample.pid);
    let ours: Vec<&perf::Sample> = samples.iter().filter(is_recorded).collect();
    let itself = name_of(&bench.lib.display().to_string());
    let name = |(pid, tid): (u32, u32)| format!("thread {tid} of {pid}");
    let mut by_thread = BTreeMap::new();
    for sample in &ours {
        *by_thread.entry(name((sample.pid, sample.tid))).or_insert(0.0) += 1.0;
    }
    let number = ours.len() as f64;
    let objects_of_chase = said::shares(bench, output)?;
    let times = threads.into_iter().map(|(thread, ns)| (name(thread), ns)).collect();
    (number > 0.0).then_some(()).context("perf has no sample of the program")?;
    Ok(Both {
        objects_of_perf: perf::by_object(ours.iter().copied(), &itself),
        threads_of_perf: Shares::from_sums(by_thread, 0.0, number),
        threads_of_chase: Shares::from_sums(times, 0.0, objects_of_chase.samples),
        objects_of_chase,
    })
}
