//! What the companion adds to threads that block very often, and whether it loses waits without saying so.
//!
//! The program's threads hand a token back and forth, each pair on one processor, so that each hand-over is a switch. It knows
//! from the kernel how often its threads were switched out by their own will.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use chase_recorder::reader::SyscallsFile;
use chase_recorder::syscalls::WAIT_VOLUNTARY;

use crate::bench::{Bench, Run, Under, unwatchable};
use crate::programs::{gcc, source};
use crate::report::{Figure, Report};
use crate::turns::{Limit, Turn, in_turns, paired};

const PART: &str = "waits";
const OFTEN: &str = "threads that block about 100,000 times a second";
/// Time that they take with the companion, times what they took with another build's.
const BEFORE_BAR: f64 = 1.05;
/// Percent of all waits that may be neither known nor said to be lost.
const LOST_BAR: f64 = 0.1;
/// How long a thread works before it blocks, beside what the switch itself takes.
const WORK_NS: &str = "3500";

const OFTEN_LIMIT: Limit = Limit { least: 5, most: 15, time: Duration::from_secs(30) };
const LOST_LIMIT: Limit = Limit { least: 3, most: 7, time: Duration::from_secs(15) };
/// Turns of a thread: half a second or more.
const TURNS: u32 = 200_000;
const LEAST_TURNS: u32 = 50_000;

pub(crate) fn measure(bench: &Bench, report: &mut Report) -> Result<()> {
    let directory = bench.directory(PART)?;
    let program = directory.join("pingpong");
    let text = source("pingpong.c").display().to_string();
    gcc(&directory, &["-pthread", &text, "-o", &program.display().to_string()])?;
    if let Some(why) = unwatchable() {
        report.skipped(PART, "all", &why);
        return Ok(());
    }
    let turns = bench.count(TURNS, LEAST_TURNS).to_string();
    let program = Program { path: program, turns };
    often(bench, report, &directory, &program);
    for how in ["pipe", "futex"] {
        lost(bench, report, &directory, &program, how);
    }
    Ok(())
}

struct Program {
    path: PathBuf,
    turns: String,
}

impl Program {
    fn command(&self, how: &str, pairs: usize, work_ns: &str) -> [String; 5] {
        let path = self.path.display().to_string();
        [path, how.to_owned(), pairs.to_string(), self.turns.clone(), work_ns.to_owned()]
    }
}

/// Microseconds from one switch to the next.
fn each_us(run: &Run) -> Result<f64> {
    Ok(1e6 / run.number(2)?)
}

/// A row: how much longer it takes; and one that compares that with another build.
fn often(bench: &Bench, report: &mut Report, directory: &Path, program: &Program) {
    let command = program.command("pipe", 1, WORK_NS);
    let run = |under| each_us(&bench.run_in(directory, under, &command)?);
    let before = bench.before.as_ref().map(|path| path.display().to_string());
    let [bare, chase, watched, before] = in_turns(
        bench.limit(OFTEN_LIMIT),
        [
            Turn::new(|| run(Under::Nothing)),
            Turn::new(|| run(Under::Chase)),
            Turn::new(|| run(Under::ChaseWithSyscalls)),
            Turn::new(|| {
                let library = before.as_deref().context("--before names no other build")?;
                let variables = [("LD_PRELOAD", library)];
                let under = Under::ChaseWithSyscalls;
                each_us(&bench.run_with(directory, under, &variables, &command)?)
            }),
        ],
    );
    let three = || Ok::<_, anyhow::Error>((bare?, chase?, watched?));
    let (bare, chase, watched) = match three() {
        Ok(three) => three,
        Err(why) => return report.failed(PART, OFTEN, None, &format!("{why:#}")),
    };
    let longer = |with: &[f64]| paired(with, &bare, |with, bare| 100.0 * (with / bare - 1.0));
    let per_second = bare.iter().map(|each_us| 1e6 / each_us / 2.0).collect();
    report.measured(Figure {
        part: PART,
        what: format!("{OFTEN}: they take longer"),
        unit: "%",
        bar: None,
        values: longer(&watched),
        details: vec![
            ("without the companion", "%", longer(&chase)),
            ("bare, from one wait to the next", "µs", bare.clone()),
            ("with the companion", "µs", watched.clone()),
            ("bare, each thread's waits", "a second", per_second),
        ],
    });
    let what = format!("{OFTEN}: ÷ with the other build");
    match before {
        Ok(before) => report.measured(Figure {
            part: PART,
            what,
            unit: "×",
            bar: Some(BEFORE_BAR),
            values: paired(&watched, &before, |now, before| now / before),
            details: vec![("other build", "µs", before), ("this one", "µs", watched)],
        }),
        Err(why) if bench.before.is_some() => {
            report.failed(PART, &what, Some(BEFORE_BAR), &format!("{why:#}"));
        }
        Err(_) => {}
    }
}

/// What is known of a run's waits.
struct Known {
    recorded: f64,
    said_lost: f64,
}

impl Known {
    fn read(output: &Path) -> Result<Self> {
        let mut known = Self { recorded: 0.0, said_lost: 0.0 };
        for entry in std::fs::read_dir(output)? {
            let path = entry?.path();
            if path.extension().is_none_or(|extension| extension != "syscalls") {
                continue;
            }
            let file = SyscallsFile::parse(std::fs::read(&path)?)
                .with_context(|| format!("reading {}", path.display()))?;
            let waits = file.waits().filter(|row| row.kind == WAIT_VOLUNTARY);
            known.recorded += waits.map(|row| row.waits as f64).sum::<f64>();
            known.said_lost += file.header().lost_waits as f64;
        }
        Ok(known)
    }
}

/// A row: as many switches as the machine can make, and how many of them nobody knows of.
fn lost(bench: &Bench, report: &mut Report, directory: &Path, program: &Program, how: &str) {
    let pairs = std::thread::available_parallelism().map_or(1, usize::from);
    let command = program.command(how, pairs, "0");
    let what =
        format!("switches by {how} on {pairs} processors: neither known nor said to be lost");
    let (rates, said) = (RefCell::new(Vec::new()), RefCell::new(Vec::new()));
    let [missing] = in_turns(
        bench.limit(LOST_LIMIT),
        [Turn::new(|| {
            let under = Under::ChaseWithSyscalls;
            let (run, known) = bench.run_and_look(directory, under, &command, Known::read)?;
            let switches = run.number(1)?;
            rates.borrow_mut().push(run.number(2)? / 1e3);
            said.borrow_mut().push(100.0 * known.said_lost / switches);
            Ok(100.0 * (switches - known.recorded - known.said_lost).max(0.0) / switches)
        })],
    );
    match missing {
        Ok(missing) => report.measured(Figure {
            part: PART,
            what,
            unit: "%",
            bar: Some(LOST_BAR),
            values: missing,
            details: vec![
                ("switches", "k/s", rates.into_inner()),
                ("said to be lost", "%", said.into_inner()),
            ],
        }),
        Err(why) => report.failed(PART, &what, Some(LOST_BAR), &format!("{why:#}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_counts_its_switches() {
        let bench = Bench::new(PathBuf::new(), 1.0).unwrap();
        let directory = bench.directory(PART).unwrap();
        let path = directory.join("pingpong");
        let text = source("pingpong.c").display().to_string();
        gcc(&directory, &["-pthread", &text, "-o", &path.display().to_string()]).unwrap();
        let program = Program { path, turns: "300".to_owned() };
        for how in ["pipe", "futex"] {
            let run = bench.run(Under::Nothing, &program.command(how, 2, "0")).unwrap();
            // Each of four threads waits for each of its turns, or finds that it has come already.
            let switches = run.number(1).unwrap();
            assert!(switches > 0.0 && run.number(2).unwrap() > 0.0, "{how}: {switches}");
        }
    }
}
