//! Whether `adaptive` and `all` say the same of a program, as nearly as they claim to: shares of objects, by calls and by
//! samples, with their intervals.
//!
//! By calls, the share is that of the time in which an object ran (its own, less waits). Where all calls are timed it is
//! no estimate, but no two runs of a program are alike: what is allowed are the intervals that both state (that of reading the
//! clock is the larger one where all calls are timed; what the others' times may be off by is in the whole, and so in a share), and,
//! as errors add up, what a run may be away from the median of those in which all was timed, by their standard deviation. By
//! samples, both state an interval, and runs are compared in pairs. The interval is for the run that was sampled; runs that differ
//! by themselves, as those of programs with several threads do, are allowed to: by as much as the runs of each kind vary more than
//! their intervals explain. A row's figure is the percentage of objects and runs that are outside.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, ensure};
use chase_analyzer::student_95;
use serde_json::Value;

use crate::bench::{Bench, Under, installed, unwatchable};
use crate::report::{Figure, Report};
use crate::shares::programs;
use crate::stated::{PROGRAMS, prepare};
use crate::turns::{Limit, OUT_OF_TIME, Spread, Turn, in_turns};

const PART: &str = "agree";
const LIMIT: Limit = Limit { least: 5, most: 20, time: Duration::from_secs(60) };
const LEAST_RUNS: usize = 3;
/// Percent of objects and runs that may be outside of a 95 % interval.
const BAR: f64 = 5.0;
/// Standard deviations that 95 of 100 values are within, where the standard deviation is known.
const TWO_SIDED_95: f64 = 1.96;
/// Objects with a smaller share, in percent, are no comparison's subject.
const LEAST: f64 = 0.5;

/// Of one object in one run: percent of the whole, and half of the interval.
#[derive(Clone, Copy, Debug, Default)]
struct Share {
    percent: f64,
    ci95: f64,
}

/// By the names of objects.
type Shares = BTreeMap<String, Share>;

/// What one run tells.
#[derive(Clone, Debug, Default)]
struct Run {
    by_calls: Shares,
    by_samples: Shares,
}

pub(crate) fn measure(bench: &Bench, report: &mut Report) -> Result<()> {
    let directory = bench.directory(PART)?;
    if let Some(why) = unwatchable() {
        report.skipped(PART, "all", &why);
        return Ok(());
    }
    let deadline = bench.deadline();
    let subjects = subjects(&directory)?;
    let mut all = Both::default();
    for (at, subject) in subjects.iter().enumerate() {
        if deadline.is_over() {
            report.skipped(PART, subject.what, OUT_OF_TIME);
            continue;
        }
        let command = match &subject.command {
            Ok(command) => command,
            Err(why) => {
                report.skipped(PART, subject.what, &format!("{why:#}"));
                continue;
            }
        };
        // Of fewer runs nobody can tell how much they differ.
        let part = deadline.part(bench.limit(LIMIT), subjects.len() - at);
        let limit = Limit { least: LEAST_RUNS, ..part };
        if let Some(found) = compare(bench, report, subject, command, limit) {
            all.by_calls.extend(found.by_calls);
            all.by_samples.extend(found.by_samples);
        }
    }
    for (how, differences) in all.in_turn() {
        figure(report, format!("all programs, {how}"), differences);
    }
    Ok(())
}

/// A program that is run in both ways.
struct Subject {
    what: &'static str,
    directory: PathBuf,
    /// Program and arguments, or why it can't be run here.
    command: Result<Vec<String>>,
}

/// Those whose cost is stated, which are short, and then those whose shares are compared with perf's.
fn subjects(directory: &Path) -> Result<Vec<Subject>> {
    prepare(directory)?;
    let short = PROGRAMS.iter().map(|&(what, command)| Subject {
        what,
        directory: directory.to_owned(),
        command: match installed(command[0]) {
            Some(_) => Ok(command.iter().map(|&word| word.to_owned()).collect()),
            None => Err(anyhow!("{} is not installed", command[0])),
        },
    });
    let others = directory.join("where");
    std::fs::create_dir_all(&others)?;
    // (Where a program's own runs differ too much, nothing can be compared.)
    let longer = programs::prepare(&others)?.into_iter().filter(|program| !program.is_unsteady);
    let longer = longer.map(|program| Subject {
        what: program.what,
        directory: program.directory,
        command: program.command,
    });
    Ok(short.chain(longer).collect())
}

/// Differences between the two ways.
#[derive(Default)]
struct Both {
    by_calls: Vec<Difference>,
    by_samples: Vec<Difference>,
}

impl Both {
    fn in_turn(&self) -> [(&'static str, &[Difference]); 2] {
        [("by calls", &self.by_calls), ("by samples", &self.by_samples)]
    }
}

fn compare(
    bench: &Bench,
    report: &mut Report,
    subject: &Subject,
    command: &[String],
    limit: Limit,
) -> Option<Both> {
    let runs = [RefCell::new(Vec::new()), RefCell::new(Vec::new())];
    let turn = |under, runs: &RefCell<Vec<Run>>| {
        let look = |path: &Path| said(bench, path);
        let (wall, run) = bench.run_and_look(&subject.directory, under, command, look)?;
        runs.borrow_mut().push(run);
        Ok(wall.wall.as_secs_f64())
    };
    let measured = in_turns(
        limit,
        [
            Turn::new(|| turn(Under::ChaseWithSyscalls, &runs[0])),
            Turn::new(|| turn(Under::ChaseAllWithSyscalls, &runs[1])),
        ],
    );
    for result in measured {
        if let Err(why) = result {
            report.failed(PART, subject.what, Some(BAR), &format!("{why:#}"));
            return None;
        }
    }
    let [adaptive, all] = runs.map(RefCell::into_inner);
    let shares = |runs: &[Run], of: fn(&Run) -> &Shares| -> Vec<Shares> {
        runs.iter().map(|run| of(run).clone()).collect()
    };
    let by_calls = |runs| shares(runs, |run| &run.by_calls);
    let by_samples = |runs| shares(runs, |run| &run.by_samples);
    let found = Both {
        by_calls: against_all(&by_calls(&adaptive), &by_calls(&all)),
        by_samples: in_pairs(&by_samples(&adaptive), &by_samples(&all)),
    };
    for (how, differences) in found.in_turn() {
        figure(report, format!("{}, {how}", subject.what), differences);
    }
    Some(found)
}

/// How far apart an object's shares are in one run, and how far they may be, in points.
struct Difference {
    object: String,
    points: f64,
    allowed: f64,
}

impl Difference {
    fn is_outside(&self) -> bool {
        self.points.abs() > self.allowed
    }
}

/// Objects with a share that matters in the median run.
fn objects(runs: &[Shares]) -> BTreeSet<&String> {
    let all: BTreeSet<&String> = runs.iter().flat_map(BTreeMap::keys).collect();
    all.into_iter().filter(|name| median(runs, name) >= LEAST).collect()
}

fn share_of(run: &Shares, name: &str) -> Share {
    run.get(name).copied().unwrap_or_default()
}

fn median(runs: &[Shares], name: &str) -> f64 {
    let percents: Vec<f64> = runs.iter().map(|run| share_of(run, name).percent).collect();
    Spread::of_values(&percents).map_or(0.0, |spread| spread.median)
}

/// Each estimate with the median of the runs in which nothing was estimated.
fn against_all(adaptive: &[Shares], all: &[Shares]) -> Vec<Difference> {
    let mut differences = Vec::new();
    for name in objects(all) {
        let truth = median(all, name);
        let stated: Vec<f64> = all.iter().map(|run| share_of(run, name).ci95).collect();
        let stated = Spread::of_values(&stated).map_or(0.0, |spread| spread.median);
        let variance = variance(all, name);
        for run in adaptive {
            let Share { percent, ci95 } = share_of(run, name);
            differences.push(Difference {
                object: name.clone(),
                points: percent - truth,
                allowed: ci95.hypot(stated).hypot(student_95(all.len() - 1) * variance.sqrt()),
            });
        }
    }
    differences
}

/// That of the runs around their median.
fn variance(runs: &[Shares], name: &str) -> f64 {
    let middle = median(runs, name);
    let squares = runs.iter().map(|run| (share_of(run, name).percent - middle).powi(2));
    squares.sum::<f64>() / (runs.len().saturating_sub(1).max(1)) as f64
}

/// The part of the variance of runs that their intervals don't explain.
fn unexplained(runs: &[Shares], name: &str) -> f64 {
    let stated = runs.iter().map(|run| (share_of(run, name).ci95 / TWO_SIDED_95).powi(2));
    let stated = stated.sum::<f64>() / runs.len().max(1) as f64;
    (variance(runs, name) - stated).max(0.0)
}

/// Each run with the one after it.
fn in_pairs(adaptive: &[Shares], all: &[Shares]) -> Vec<Difference> {
    let pair = |name: &String, (a, b): (&Shares, &Shares)| {
        // Each of the two differs from the others of its kind.
        let differ = unexplained(adaptive, name) + unexplained(all, name);
        let differ = student_95(adaptive.len() + all.len() - 2) * differ.sqrt();
        let (a, b) = (share_of(a, name), share_of(b, name));
        let allowed = a.ci95.hypot(b.ci95).hypot(differ);
        Difference { object: name.clone(), points: a.percent - b.percent, allowed }
    };
    let pairs = || adaptive.iter().zip(all);
    objects(all).into_iter().flat_map(|name| pairs().map(move |runs| pair(name, runs))).collect()
}

fn figure(report: &mut Report, what: String, differences: &[Difference]) {
    if differences.is_empty() {
        return report.skipped(PART, &what, "no object has a share");
    }
    let outside = |of: &[&Difference]| {
        100.0 * of.iter().filter(|difference| difference.is_outside()).count() as f64
            / of.len() as f64
    };
    let mut by_object: BTreeMap<&str, Vec<&Difference>> = BTreeMap::new();
    for difference in differences {
        by_object.entry(&difference.object).or_default().push(difference);
    }
    let worst = by_object.iter().max_by(|a, b| outside(a.1).total_cmp(&outside(b.1)));
    let Some((worst, of_worst)) = worst else { return };
    let all: Vec<&Difference> = differences.iter().collect();
    let what = match outside(of_worst) > 0.0 {
        true => format!("{what}: outside of the interval, most in {worst}"),
        false => format!("{what}: outside of the interval"),
    };
    report.measured(Figure {
        part: PART,
        what,
        unit: "%",
        // Where a single one outside would be more, there is no bar.
        bar: (100.0 / differences.len() as f64 <= BAR).then_some(BAR),
        values: vec![outside(&all)],
        details: vec![
            ("objects and runs", "", vec![differences.len() as f64]),
            ("apart", "points", differences.iter().map(|one| one.points.abs()).collect()),
            ("allowed", "points", differences.iter().map(|one| one.allowed).collect()),
            ("most outside: apart", "points", of_worst.iter().map(|one| one.points).collect()),
            ("most outside: allowed", "points", of_worst.iter().map(|one| one.allowed).collect()),
        ],
    });
}

/// What a report says of the run recorded in `output`.
fn said(bench: &Bench, output: &Path) -> Result<Run> {
    let mut reporter = Command::new(bench.lib.with_file_name("chase-report"));
    reporter.args(["libs", "--json"]).arg(output);
    let shown = reporter.output().context("starting chase-report")?;
    let document: Value = serde_json::from_slice(&shown.stdout).context("reading the report")?;
    let own = bench.lib.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let mut run = Run::default();
    for row in document["libraries"].as_array().context("a report without libraries")? {
        let name = row["name"].as_str().context("a library without a name")?;
        if name == own || row["kind"] == "unattributed" {
            continue;
        }
        let ns = |field: &str| number(&row[field]).unwrap_or(0.0);
        let ran = (ns("self_ns") - ns("blocked_ns") - ns("runnable_ns")).max(0.0);
        // An executable may have rows of two kinds.
        let add = |shares: &mut Shares, percent: f64, ci95: f64| {
            let share = shares.entry(name.to_owned()).or_default();
            *share = Share { percent: share.percent + percent, ci95: share.ci95.hypot(ci95) };
        };
        add(&mut run.by_calls, ran, ns("ci95_ns").hypot(ns("clock_ci95_ns")));
        add(&mut run.by_samples, ns("on_cpu_ns"), ns("on_cpu_ci95_ns"));
    }
    // (By samples, the whole is known.)
    of_the_whole(&mut run.by_calls, 1.0)?;
    of_the_whole(&mut run.by_samples, 0.0)?;
    Ok(run)
}

/// Makes percentages of times, where the intervals of the others' times count as such a part in that of the whole.
fn of_the_whole(times: &mut Shares, others: f64) -> Result<()> {
    let whole: f64 = times.values().map(|time| time.percent).sum();
    ensure!(whole > 0.0, "a report without times");
    let squares: f64 = times.values().map(|time| time.ci95.powi(2)).sum();
    for time in times.values_mut() {
        let of_others = (squares - time.ci95.powi(2)).max(0.0).sqrt();
        let ci95 = time.ci95.hypot(others * of_others * time.percent / whole);
        *time = Share { percent: time.percent * 100.0 / whole, ci95: ci95 * 100.0 / whole };
    }
    Ok(())
}

/// Numbers that may not fit are strings.
fn number(value: &Value) -> Option<f64> {
    value.as_f64().or_else(|| value.as_str()?.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(of: &[(&str, f64, f64)]) -> Shares {
        of.iter().map(|&(name, percent, ci95)| (name.to_owned(), Share { percent, ci95 })).collect()
    }

    fn outside(differences: &[Difference]) -> usize {
        differences.iter().filter(|difference| difference.is_outside()).count()
    }

    #[test]
    fn estimates_may_be_off_by_their_interval_and_by_what_runs_differ() {
        let all = [run(&[("a", 59.0, 0.0), ("b", 41.0, 0.0)]), run(&[("a", 61.0, 0.0)])];
        let of = |percent, ci95| against_all(&[run(&[("a", percent, ci95)])], &all[..1]);
        assert_eq!(outside(&of(60.0, 1.5)), 1, "b is not there");
        assert!(!of(60.0, 1.5)[0].is_outside() && of(60.0, 0.5)[0].is_outside());
        // With a standard deviation of 1.4 points, of two runs.
        let both = against_all(&[run(&[("a", 77.9, 0.0)]), run(&[("a", 78.1, 0.0)])], &all);
        let of_a: Vec<bool> =
            both.iter().filter(|one| one.object == "a").map(Difference::is_outside).collect();
        assert_eq!(of_a, [false, true]);
    }

    #[test]
    fn an_error_of_another_time_is_one_of_the_whole() {
        let mut times = run(&[("a", 30.0, 0.0), ("b", 90.0, 12.0)]);
        of_the_whole(&mut times, 1.0).unwrap();
        let (a, b) = (times["a"], times["b"]);
        assert_eq!((a.percent, b.percent), (25.0, 75.0));
        assert!((a.ci95 - 2.5).abs() < 1e-9 && (b.ci95 - 10.0).abs() < 1e-9, "{a:?} {b:?}");
        assert!(of_the_whole(&mut run(&[("a", 0.0, 0.0)]), 1.0).is_err());
    }

    #[test]
    fn of_pairs_both_have_an_interval() {
        let adaptive = [run(&[("a", 50.0, 3.0)]), run(&[("a", 50.0, 3.0)])];
        let all = [run(&[("a", 54.9, 4.0)]), run(&[("a", 55.1, 4.0)])];
        assert_eq!(outside(&in_pairs(&adaptive, &all)), 1);
        // These differ by more than their intervals explain: with a standard deviation of 7.1 points, where 2 are.
        let differing = [run(&[("a", 55.0, 4.0)]), run(&[("a", 65.0, 4.0)])];
        let found = in_pairs(&adaptive, &differing);
        let differ = student_95(2) * (50.0 - (4_f64 / TWO_SIDED_95).powi(2)).sqrt();
        assert!((found[0].allowed - 5_f64.hypot(differ)).abs() < 0.01, "{}", found[0].allowed);
        // What has next to nothing is not compared.
        assert!(in_pairs(&adaptive, &[run(&[("a", 0.4, 0.0)])]).is_empty());
    }
}
