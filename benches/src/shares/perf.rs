//! Shares by `perf record`.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::{Shares, name_of};
use crate::bench::{Bench, Under};

/// Samples a second; not what chase takes, so that the two are not in step with the same things.
const HZ: &str = "1009";

/// Runs `command` under perf, with its children.
pub(super) fn shares(bench: &Bench, directory: &Path, command: &[String]) -> Result<Shares> {
    let output = bench.fresh();
    let path = output.display().to_string();
    let options = ["record", "--quiet", "-F", HZ, "-e", "cpu-clock/max-stack=1/"];
    let chains = ["--call-graph", "fp", "--user-callchains", "-o", &path, "--"];
    let mut perf = vec!["perf".to_owned()];
    perf.extend(options.iter().chain(&chains).map(|&word| word.to_owned()));
    perf.extend_from_slice(command);
    bench.run_in(directory, Under::Nothing, &perf)?;
    let mut script = Command::new("perf");
    script.args(["script", "-F", "pid,ip,dso", "-i", &path]);
    let shown = script.output().context("starting perf script")?;
    let _ = std::fs::remove_file(&output);
    if !shown.status.success() {
        bail!("perf script failed: {}", String::from_utf8_lossy(&shown.stderr).trim());
    }
    Ok(parse(&String::from_utf8_lossy(&shown.stdout)))
}

/// Lines of samples, which begin with a process, each followed by an indented one with a place, if there is one.
fn parse(text: &str) -> Shares {
    let mut names = BTreeMap::new();
    let mut objects = BTreeMap::new();
    let (mut samples, mut placed) = (0.0, 0.0);
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        let dso = line.trim().split_once(" (").and_then(|(_, rest)| rest.strip_suffix(')'));
        let Some(dso) = dso else {
            samples += 1.0;
            continue;
        };
        placed += 1.0;
        let name = names.entry(dso).or_insert_with(|| named(dso));
        *objects.entry(name.clone()).or_insert(0.0) += 1.0;
    }
    Shares::of(objects, samples - placed, samples)
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
        let text = "15110 \n\t     e2bc (/no/such/ld.so.2)\n\n15110 \n\n15110 \n\t 16d (//anon)\n\n\
            15110 \n\t 16d (/tmp/perf-15110.map)\n\n15111 \n\t 17 (/no/such/ld.so.2 (deleted))\n\n";
        let shares = parse(text);
        assert_eq!((shares.samples, shares.left_out), (5.0, 20.0));
        assert_eq!(shares.of_object("ld.so.2"), 50.0);
        assert_eq!(shares.of_object("[generated code]"), 50.0);
    }
}
