//! What real programs cost: wall time under chase and under its peers, as a multiple of the bare
//! run's. What they print and write must be the same in each run.

use std::cell::Cell;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail, ensure};

use crate::bench::{Bench, Run, Under, unwatchable};
use crate::peers::{self, Peer};
use crate::programs::libc;
use crate::report::{Figure, Report};
use crate::turns::{Limit, Turn, in_turns, paired, quantiles};
use crate::workloads::{self, Workload};

const PART: &str = "real";
/// Of what a bar is set for, more: single runs differ by as much as the bar allows.
const BARRED_LIMIT: Limit = Limit { least: 25, most: 45, time: Duration::from_secs(30) };
const LIMIT: Limit = Limit { least: 3, most: 9, time: Duration::from_secs(12) };
const PEER_BARRED_LIMIT: Limit = Limit { least: 3, most: 5, time: Duration::from_secs(8) };
const PEER_LIMIT: Limit = Limit { least: 1, most: 5, time: Duration::from_secs(8) };

const ADAPTIVE: &str = "adaptive";
const WATCHED: &str = "adaptive, system calls too";
const UPROBES: &str = "bpftrace, uprobes on malloc and free";

/// Times the bare run, where hot calls are sampled: each of those whose geometric mean is taken, and
/// that mean.
const BAR: f64 = 1.15;
const MEAN_BAR: f64 = 1.05;

pub(crate) fn measure(bench: &Bench, report: &mut Report) -> Result<()> {
    let directory = bench.directory(PART)?;
    let unwatchable = unwatchable();
    let workloads = workloads::prepare(&directory)?;
    // Those whose mean is taken: ratios to the bare run, or the name of one that has none.
    let mut in_mean = Ok(Vec::new());
    for workload in &workloads {
        let ratios = against_bare(bench, report, workload, unwatchable.as_deref());
        if let (true, Ok(all)) = (workload.in_mean, &mut in_mean) {
            match ratios {
                Some(ratios) => all.push(ratios),
                None => in_mean = Err(workload.what),
            }
        }
    }
    mean(report, in_mean);
    if bench.peers {
        against_peers(bench, report, &directory, &workloads);
    }
    Ok(())
}

/// Rows of what chase takes; returns the ratios in `adaptive`.
fn against_bare(
    bench: &Bench,
    report: &mut Report,
    workload: &Workload,
    unwatchable: Option<&str>,
) -> Option<Vec<f64>> {
    let same = Same::default();
    let run = |under| -> Result<f64> {
        let command = workload.command.as_ref().map_err(|why| anyhow!("{why:#}"))?;
        let run = bench.run_in(&workload.directory, under, command)?;
        same.check(&run, workload)?;
        Ok(milliseconds(&run))
    };
    let [bare, adaptive] = in_turns(
        bench.limit(BARRED_LIMIT),
        [Turn::new(|| run(Under::Nothing)), Turn::new(|| run(Under::Chase))],
    );
    let [bare_again, all, watched] = in_turns(
        bench.limit(LIMIT),
        [
            Turn::new(|| run(Under::Nothing)),
            Turn::new(|| run(Under::ChaseAll)),
            Turn::new(|| match unwatchable {
                None => run(Under::ChaseWithSyscalls),
                Some(why) => bail!("{why}"),
            }),
        ],
    );
    let (bare, bare_again) = match (bare, bare_again) {
        (Ok(bare), Ok(again)) => (bare, again),
        (Err(why), _) | (_, Err(why)) => {
            report.skipped(PART, workload.what, &format!("{why:#}"));
            return None;
        }
    };
    let mut ratios = None;
    for (how, bar, bare, chase) in [
        (ADAPTIVE, Some(BAR), &bare, adaptive),
        ("all", None, &bare_again, all),
        (WATCHED, None, &bare_again, watched),
    ] {
        let what = format!("{}, {how}", workload.what);
        match chase {
            Ok(chase) => {
                let values = paired(&chase, bare, |chase, bare| chase / bare);
                if how == ADAPTIVE {
                    ratios = Some(values.clone());
                }
                report.measured(Figure {
                    part: PART,
                    what,
                    unit: "×",
                    bar,
                    values,
                    details: vec![("bare", "ms", bare.clone()), ("chase", "ms", chase)],
                });
            }
            Err(why) if how == WATCHED && unwatchable.is_some() => {
                report.skipped(PART, &what, &format!("{why:#}"));
            }
            Err(why) => report.failed(PART, &what, bar, &format!("{why:#}")),
        }
    }
    ratios
}

/// A row: the geometric mean over programs.
fn mean(report: &mut Report, in_mean: Result<Vec<Vec<f64>>, &str>) {
    let what = "geometric mean of the first eight, adaptive".to_owned();
    let ratios = match in_mean {
        Ok(ratios) => ratios,
        Err(missing) => {
            return report.skipped(PART, &what, &format!("there is no figure for {missing}"));
        }
    };
    report.measured(Figure {
        part: PART,
        what,
        unit: "×",
        bar: Some(MEAN_BAR),
        values: geometric_means(&ratios),
        details: Vec::new(),
    });
}

/// Of the least values, of the lower quartiles, of the medians, and so on, so that the median of these is
/// the mean of the medians, and their quartiles are the means of the quartiles; nothing if one has no value.
/// (Rounds of different programs have nothing in common.)
pub(crate) fn geometric_means(of: &[Vec<f64>]) -> Vec<f64> {
    const QUANTILES: [f64; 5] = [0.0, 0.25, 0.5, 0.75, 1.0];
    let all: Option<Vec<_>> = of.iter().map(|values| quantiles(values, QUANTILES)).collect();
    let Some(all) = all.filter(|all| !all.is_empty()) else { return Vec::new() };
    let mean = |at: usize| {
        (all.iter().map(|of_one| of_one[at].ln()).sum::<f64>() / all.len() as f64).exp()
    };
    (0..QUANTILES.len()).map(mean).collect()
}

/// Rows of what others take, and how what chase takes compares with the one that records the same.
fn against_peers(bench: &Bench, report: &mut Report, directory: &Path, workloads: &[Workload]) {
    let mut all = peers::library_calls();
    match libc() {
        Ok(libc) => all.push(peers::uprobes(UPROBES, &libc, &["malloc", "free"])),
        Err(why) => report.skipped(PART, UPROBES, &format!("{why:#}")),
    }
    all.extend(peers::system_calls());
    let all = peers::usable(bench, report, PART, all);
    for peer in &all {
        start_and_end(bench, report, directory, peer);
    }
    for workload in workloads {
        // Why there is none has been said.
        let Ok(command) = &workload.command else { continue };
        for peer in &all {
            against_peer(bench, report, workload, command, peer);
        }
    }
}

/// A row: what the tool takes for a program that does nothing.
fn start_and_end(bench: &Bench, report: &mut Report, directory: &Path, peer: &Peer) {
    let what = format!("{}: its own start and end", peer.name);
    let command = ["true".to_owned()];
    let [values] = in_turns(
        bench.limit(Limit { least: 3, most: 5, time: Duration::from_secs(3) }),
        [Turn::new(|| {
            let (running, _output) = peer.start(bench, directory, &command)?;
            Ok(milliseconds(&running.finish(peers::patience(Duration::ZERO))?))
        })],
    );
    match values {
        Ok(values) => {
            let (part, unit, bar, details) = (PART, "ms", None, Vec::new());
            report.measured(Figure { part, what, unit, bar, values, details });
        }
        Err(why) => peers::gave_none(report, PART, &what, &why, None),
    }
}

fn against_peer(
    bench: &Bench,
    report: &mut Report,
    workload: &Workload,
    command: &[String],
    peer: &Peer,
) {
    let what = format!("{}: {}", workload.what, peer.name);
    let directory = &workload.directory;
    let same = Same::default();
    let last_bare = Cell::new(Duration::ZERO);
    let checked = |run: Run| -> Result<Run> { same.check(&run, workload).map(|()| run) };
    let [bare, with, chase] = in_turns(
        bench.limit(if peer.records_the_same() { PEER_BARRED_LIMIT } else { PEER_LIMIT }),
        [
            Turn::new(|| {
                let run = checked(bench.run_in(directory, Under::Nothing, command)?)?;
                last_bare.set(run.wall);
                Ok(milliseconds(&run))
            }),
            Turn::new(|| {
                let limit = peers::patience(last_bare.get());
                Ok(milliseconds(&checked(peer.run(bench, directory, command, limit)?)?))
            }),
            Turn::new(|| {
                ensure!(peer.records_the_same(), "not to be compared with");
                let run = bench.run_in(directory, Under::ChaseAll, command)?;
                Ok(milliseconds(&checked(run)?))
            }),
        ],
    );
    let (bare, with) = match (bare, with) {
        (Ok(bare), Ok(with)) => (bare, with),
        (Err(why), _) => return report.skipped(PART, &what, &format!("{why:#}")),
        (_, Err(why)) => {
            return peers::gave_none(report, PART, &what, &why, Some(last_bare.get()));
        }
    };
    report.measured(Figure {
        part: PART,
        what,
        unit: "×",
        bar: None,
        values: paired(&with, &bare, |with, bare| with / bare),
        details: vec![("bare", "ms", bare), (peer.name, "ms", with.clone())],
    });
    if !peer.records_the_same() {
        return;
    }
    let what = format!("{}: all ÷ {}", workload.what, peer.name);
    match chase {
        Ok(chase) => report.measured(Figure {
            part: PART,
            what,
            unit: "×",
            bar: Some(peers::BAR),
            values: paired(&chase, &with, |chase, with| chase / with),
            details: vec![("chase", "ms", chase), (peer.name, "ms", with)],
        }),
        Err(why) => report.failed(PART, &what, Some(peers::BAR), &format!("{why:#}")),
    }
}

pub(crate) fn milliseconds(run: &Run) -> f64 {
    run.wall.as_secs_f64() * 1e3
}

/// Makes sure that all runs have the same outcome.
#[derive(Default)]
pub(crate) struct Same(Cell<Option<u64>>);

impl Same {
    /// Fails when what was printed and written differs from the first time.
    pub(crate) fn check(&self, run: &Run, workload: &Workload) -> Result<()> {
        let mut hasher = DefaultHasher::new();
        run.stdout.hash(&mut hasher);
        if let Some(name) = workload.writes {
            let path = workload.directory.join(name);
            let written = std::fs::read(&path).with_context(|| format!("no {name} was written"))?;
            written.hash(&mut hasher);
            // The next run is to write its own.
            std::fs::remove_file(&path).with_context(|| format!("removing {name}"))?;
        }
        let outcome = hasher.finish();
        let first = self.0.get().unwrap_or(outcome);
        self.0.set(Some(first));
        ensure!(outcome == first, "wrong output");
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::turns::Spread;

    #[test]
    fn the_median_of_the_means_is_the_mean_of_the_medians() {
        let means = geometric_means(&[vec![2.0, 9.0, 1.0], vec![8.0, 8.0]]);
        let spread = Spread::of_values(&means).unwrap();
        let near = |a: f64, b: f64| (a - b).abs() < 1e-9;
        assert!(near(spread.median, 4.0), "{spread:?}");
        assert!(near(spread.low, 12_f64.sqrt()) && near(spread.high, 44_f64.sqrt()), "{spread:?}");
        assert!(geometric_means(&[]).is_empty() && geometric_means(&[vec![]]).is_empty());
    }

    #[test]
    fn another_output_is_a_failure() {
        let directory = tempfile::tempdir().unwrap();
        let written = directory.path().join("written");
        let workload = Workload {
            what: "a",
            directory: directory.path().to_owned(),
            command: Ok(Vec::new()),
            writes: Some("written"),
            in_mean: false,
        };
        let same = Same::default();
        let check = |stdout: &str, file: &str| {
            std::fs::write(&written, file).unwrap();
            let run = Run { wall: Duration::ZERO, stdout: stdout.into() };
            same.check(&run, &workload).map_err(|why| why.to_string())
        };
        assert_eq!(check("a", "b"), Ok(()));
        assert_eq!(check("a", "c"), Err("wrong output".to_owned()));
        assert_eq!(check("b", "b"), Err("wrong output".to_owned()));
        assert_eq!(check("a", "b"), Ok(()));
    }
}
