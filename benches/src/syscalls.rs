//! What the companion adds to a system call, in units of what an empty pair of programs adds.

use std::ffi::OsString;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use chase_companion::empty::EmptyPair;

use crate::bench::{Bench, Under, installed};
use crate::programs::{gcc, source};
use crate::report::{Figure, Report};
use crate::turns::{Limit, Turn, in_turns, paired};

const PART: &str = "syscalls";
/// Times what an empty pair of programs adds, in the process that is traced.
const BAR_TRACED: f64 = 2.7;
/// The same in others.
const BAR_OTHERS: f64 = 1.2;

const LIMIT: Limit = Limit { least: 3, most: 15, time: Duration::from_secs(20) };
/// Short rounds: one of them is undisturbed.
const ROUNDS: [&str; 2] = ["200", "5000"];
/// Peers that stop the process at each call.
const FEW: [&str; 2] = ["3", "5000"];

pub(crate) fn measure(bench: &Bench, report: &mut Report) -> Result<()> {
    let directory = bench.directory(PART)?;
    let program = directory.join("syscalls");
    let source = source("syscalls.c").display().to_string();
    gcc(&directory, &["-O1", &source, "-o", &program.display().to_string()])?;
    let companion = bench.lib.with_file_name("chase-companion");
    let others = directory.join("others");
    let [bare, empty, others, traced] = in_turns(
        bench.limit(LIMIT),
        [
            Turn::new(|| run(bench, Under::Nothing, &program, ROUNDS)),
            Turn::new(|| {
                let _empty = EmptyPair::attach()?;
                run(bench, Under::Nothing, &program, ROUNDS)
            }),
            Turn::new(|| {
                let _listening = Listening::start(&companion, &others)?;
                run(bench, Under::Nothing, &program, ROUNDS)
            }),
            Turn::new(|| run(bench, Under::ChaseWithSyscalls, &program, ROUNDS)),
        ],
    );
    let all = || Ok::<_, anyhow::Error>((bare?, empty?, others?, traced?));
    let (bare, empty, others, traced) = match all() {
        Ok(all) => all,
        Err(why) => {
            report.failed(PART, "the traced process", Some(BAR_TRACED), &format!("{why:#}"));
            return Ok(());
        }
    };
    let added = |with: &[f64]| paired(with, &bare, |with, bare| with - bare);
    let floor = added(&empty);
    for (what, with, bar) in
        [("the traced process", &traced, BAR_TRACED), ("other processes", &others, BAR_OTHERS)]
    {
        report.measured(Figure {
            part: PART,
            what: what.to_owned(),
            unit: "× empty pair",
            bar: Some(bar),
            values: paired(&added(with), &floor, |with, floor| with / floor),
            details: vec![
                ("bare", "ns", bare.clone()),
                ("empty pair adds", "ns", floor.clone()),
                ("chase adds", "ns", added(with)),
            ],
        });
    }
    peers(bench, report, &program, &added(&traced));
    Ok(())
}

/// ns per call.
fn run(bench: &Bench, under: Under, program: &Path, rounds: [&str; 2]) -> Result<f64> {
    let command = [program.as_os_str(), rounds[0].as_ref(), rounds[1].as_ref()];
    bench.run(under, &command)?.number(0)
}

/// A companion whose process to watch never comes.
struct Listening(Child);

impl Listening {
    fn start(companion: &Path, directory: &Path) -> Result<Self> {
        const PATIENCE: Duration = Duration::from_secs(10);
        // That of an earlier turn.
        let _ = std::fs::remove_file(directory.join("companion.session"));
        let mut command = Command::new(companion);
        command.arg("--output").arg(directory).args(["--patience", "60"]);
        let child = command.stderr(Stdio::null()).spawn();
        let mut this = Self(child.with_context(|| format!("starting {}", companion.display()))?);
        let start = Instant::now();
        while std::fs::read_to_string(directory.join("companion.session"))
            .map_or(true, |text| !text.contains("session "))
        {
            if start.elapsed() > PATIENCE || this.0.try_wait()?.is_some() {
                bail!("the companion does not get ready");
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(this)
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn peers(bench: &Bench, report: &mut Report, program: &Path, chase: &[f64]) {
    let program = program.as_os_str().to_owned();
    let traced = |wrapper: Vec<OsString>| {
        let mut command = wrapper;
        command.push(program.clone());
        command.extend(FEW.map(OsString::from));
        command
    };
    let quoted = format!("{} {} {}", program.to_string_lossy(), FEW[0], FEW[1]);
    let script = "tracepoint:raw_syscalls:sys_enter /pid == cpid/ { @s[tid] = nsecs; } \
        tracepoint:raw_syscalls:sys_exit /@s[tid]/ { @[args->id] = sum(nsecs - @s[tid]); delete(@s[tid]); }";
    let strace =
        traced(["strace", "-f", "-qq", "-c", "-o", "/dev/null"].map(OsString::from).into());
    let bpftrace = ["bpftrace", "-e", script, "-c", &quoted].map(OsString::from).to_vec();
    for (name, command) in [("strace -c", strace), ("bpftrace", bpftrace)] {
        let what = format!("{name} ÷ chase");
        if command.first().and_then(|tool| installed(&tool.to_string_lossy())).is_none() {
            report.failed(PART, &what, None, "not installed");
            continue;
        }
        let limit = bench.limit(Limit { least: 3, most: 3, time: Duration::ZERO });
        let [bare, with] = in_turns(
            limit,
            [
                Turn::new(|| run(bench, Under::Nothing, Path::new(&program), FEW)),
                Turn::new(|| number_in(&bench.run(Under::Nothing, &command)?.stdout)),
            ],
        );
        match (bare, with) {
            (Ok(bare), Ok(with)) => {
                let added = paired(&with, &bare, |with, bare| with - bare);
                report.measured(Figure {
                    part: PART,
                    what,
                    unit: "×",
                    bar: None,
                    values: paired(&added, chase, |peer, chase| peer / chase),
                    details: vec![("adds", "ns", added.clone())],
                });
            }
            (Err(why), _) | (_, Err(why)) => report.failed(PART, &what, None, &format!("{why:#}")),
        }
    }
}

/// The program's number among what its tracer prints.
fn number_in(text: &str) -> Result<f64> {
    let mut numbers = text.lines().filter_map(|line| line.trim().parse().ok());
    numbers.next().with_context(|| format!("no number in {text:?}"))
}
