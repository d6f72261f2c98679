//! Shares by `perf record`.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::{Shares, name_of};
use crate::bench::{Bench, Under};

/// Samples a second; not what chase takes, so that the two are not in step with the same things.
const HZ: &str = "1009";

/// How samples are taken.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Of {
    /// Of user space and the kernel.
    All,
    UserSpace,
}

/// A sample.
pub(super) struct Sample {
    pub(super) pid: u32,
    pub(super) tid: u32,
    /// Where the processor was, or was last, in user space: the mapped file.
    dso: Option<String>,
}

/// Runs `command` under perf, with its children.
pub(super) fn shares(bench: &Bench, directory: &Path, command: &[String]) -> Result<Shares> {
    let output = bench.fresh();
    let samples = samples(bench, directory, &recorded(&output, Of::All, command), &output)?;
    Ok(by_object(&samples, ""))
}

/// `command` under perf, which writes to `output`.
pub(super) fn recorded(output: &Path, of: Of, command: &[String]) -> Vec<String> {
    let event = match of {
        Of::All => "cpu-clock/max-stack=1/",
        Of::UserSpace => "cpu-clock/max-stack=1/u",
    };
    let path = output.display().to_string();
    let options = ["record", "--quiet", "-F", HZ, "-e", event];
    let chains = ["--call-graph", "fp", "--user-callchains", "-o", &path, "--"];
    let words = ["perf"].into_iter().chain(options).chain(chains).map(str::to_owned);
    words.chain(command.iter().cloned()).collect()
}

/// Runs what records samples to `output`, and reads them.
pub(super) fn samples(
    bench: &Bench,
    directory: &Path,
    command: &[String],
    output: &Path,
) -> Result<Vec<Sample>> {
    bench.run_in(directory, Under::Nothing, command)?;
    let mut script = Command::new("perf");
    // (Another user's file is read, too.)
    script.args(["script", "-f", "-F", "pid,tid,ip,dso", "-i"]).arg(output);
    let shown = script.output().context("starting perf script")?;
    let _ = std::fs::remove_file(output);
    if !shown.status.success() {
        bail!("perf script failed: {}", String::from_utf8_lossy(&shown.stderr).trim());
    }
    parse(&String::from_utf8_lossy(&shown.stdout))
}

/// Lines of samples, which are a process and a thread, each followed by an indented one with a place, if there is one.
fn parse(text: &str) -> Result<Vec<Sample>> {
    let mut samples: Vec<Sample> = Vec::new();
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        match line.split_once(" (").and_then(|(_, rest)| rest.strip_suffix(')')) {
            Some(dso) => {
                let sample = samples.last_mut().context("a place without a sample")?;
                sample.dso = Some(dso.to_owned());
            }
            None => {
                let numbers = line.split_once('/');
                let numbers = numbers.and_then(|(p, t)| Some((p.parse().ok()?, t.parse().ok()?)));
                let (pid, tid) = numbers.with_context(|| format!("perf script says {line:?}"))?;
                samples.push(Sample { pid, tid, dso: None });
            }
        }
    }
    Ok(samples)
}

/// Shares of objects; what is in `itself`, or without a place, is left out.
pub(super) fn by_object<'s>(samples: impl IntoIterator<Item = &'s Sample>, itself: &str) -> Shares {
    let mut names = BTreeMap::new();
    let mut objects = BTreeMap::new();
    let (mut number, mut placed) = (0.0, 0.0);
    for sample in samples {
        number += 1.0;
        let Some(dso) = &sample.dso else { continue };
        let name = names.entry(dso.as_str()).or_insert_with(|| named(dso));
        if name.as_str() != itself {
            placed += 1.0;
            *objects.entry(name.clone()).or_insert(0.0) += 1.0;
        }
    }
    Shares::from_sums(objects, number - placed, number)
}

/// As chase calls it.
fn named(dso: &str) -> String {
    // Code that was made by the program is in no file; perf looks for its map in such a file.
    let is_map = dso.starts_with("/tmp/perf-") && dso.ends_with(".map");
    if is_map || dso.starts_with("//anon") || dso.starts_with("[anon") {
        return "[generated code]".to_owned();
    }
    name_of(dso)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_counted_by_object() {
        let text = "15110/15110 \n\t     e2bc (/no/such/ld.so.2)\n\n15110/15110 \n\n15110/15112 \n\t 16d (//anon)\n\n\
            15110/15110 \n\t 16d (/tmp/perf-15110.map)\n\n 15111/15111 \n\t 17 (/no/such/ld.so.2 (deleted))\n\n";
        let samples = parse(text).unwrap();
        let shares = by_object(&samples, "");
        assert_eq!((shares.samples, shares.left_out), (5.0, 20.0));
        assert_eq!(shares.of_object("ld.so.2"), 50.0);
        assert_eq!(shares.of_object("[generated code]"), 50.0);
        assert_eq!((samples[2].pid, samples[2].tid), (15110, 15112));
        let shares = by_object(&samples, "ld.so.2");
        assert_eq!((shares.of_object("[generated code]"), shares.left_out), (100.0, 60.0));
        assert!(parse("\t 17 (/no/such/ld.so.2)\n").is_err() && parse("perf\n").is_err());
    }
}
