//! Runs of very many processes, such as test suites: how long a report of all their recordings takes, and what memory,
//! before they are folded into one file and after.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use chase_recorder::builder::Builder;
use chase_recorder::layout::END_EXIT;

use crate::analysis::{Cost, summary_of};
use crate::bench::Bench;
use crate::report::{Figure, Report};

const PART: &str = "load";
/// Processes: more than a process may have mappings (65,530).
const PROCESSES: u32 = 100_000;
/// Seconds and MB (10⁶ bytes) for a report, and kB of a recording that was folded.
const BAR_TIME: f64 = 10.0;
const BAR_MEMORY: f64 = 500.0;
const BAR_FOLDED: f64 = 5.0;
/// Programs that they run, and imports of each, most of which are called once.
const PROGRAMS: usize = 20;
const IMPORTS: usize = 60;
/// Processes whose recordings are large, their threads, and the functions that each of these calls, in all others too.
const LARGE_PROCESSES: u32 = 10_000;
const LEAST_LARGE: u32 = 100;
const LARGE_THREADS: usize = 16;
const LARGE_FUNCTIONS: usize = 8;

pub(crate) fn measure(bench: &Bench, report: &mut Report) -> Result<()> {
    let program = bench.lib.with_file_name("chase-report");
    ensure!(program.is_file(), "no report at {}: cargo build --release", program.display());
    let directory = bench.directory(PART)?.join("recordings");
    write(&directory)?;
    let cost = all_of(&program, &directory)?;
    report_cost(report, &format!("a report of {PROCESSES} recordings"), cost, Vec::new());

    let start = Instant::now();
    let status = Command::new(&program).arg("fold").arg(&directory).stdout(Stdio::null()).status();
    ensure!(status?.success(), "chase-report fold {}", directory.display());
    let seconds = start.elapsed().as_secs_f64();
    let left = fs::read_dir(&directory)?.collect::<Result<Vec<_>, _>>()?;
    ensure!(left.len() == 1, "{} files are left", left.len());
    let bytes = left[0].metadata()?.len() as f64;
    report.measured(Figure {
        part: PART,
        what: "a recording that was folded".to_owned(),
        unit: "kB",
        bar: Some(BAR_FOLDED),
        values: vec![bytes / 1e3 / f64::from(PROCESSES)],
        details: vec![("folding all", "s", vec![seconds])],
    });
    let cost = all_of(&program, &directory)?;
    report_cost(report, "a report of them, folded", cost, vec![("file", "MB", vec![bytes / 1e6])]);
    fs::remove_dir_all(&directory).context("removing the recordings")?;
    large(bench, &program, &directory, report)
}

/// A report of recordings that are large together, and how much memory that takes.
fn large(bench: &Bench, program: &Path, directory: &Path, report: &mut Report) -> Result<()> {
    let processes = bench.count(LARGE_PROCESSES, LEAST_LARGE);
    let what = format!("a report of {processes} recordings of many contexts");
    let mut builder = long_program();
    fs::create_dir_all(directory).with_context(|| format!("making {}", directory.display()))?;
    let needed = u64::from(processes) * builder.build().len() as u64;
    let disk = rustix::fs::statvfs(directory)?;
    if disk.f_bavail * disk.f_frsize < needed {
        report.skipped(PART, &what, &format!("no room for {} MB", needed / 1_000_000));
        return Ok(());
    }
    for number in 0..processes {
        begin(&mut builder, number);
        let path = directory.join(format!("long.{}.chase", builder.header.pid));
        fs::write(&path, builder.build()).with_context(|| format!("writing {}", path.display()))?;
    }
    let cost = all_of(program, directory)?;
    report_cost(report, &what, cost, vec![("files", "MB", vec![needed as f64 / 1e6])]);
    fs::remove_dir_all(directory).context("removing the recordings")
}

fn report_cost(
    report: &mut Report,
    what: &str,
    cost: Cost,
    details: Vec<(&'static str, &'static str, Vec<f64>)>,
) {
    report.measured(Figure {
        part: PART,
        what: what.to_owned(),
        unit: "s",
        bar: Some(BAR_TIME),
        values: vec![cost.seconds],
        details,
    });
    report.measured(Figure {
        part: PART,
        what: format!("{what}: memory"),
        unit: "MB",
        bar: Some(BAR_MEMORY),
        values: vec![cost.bytes / 1e6],
        details: Vec::new(),
    });
}

/// A summary of all that is there, with everything that is computed for it.
fn all_of(program: &Path, directory: &Path) -> Result<Cost> {
    let mut command = Command::new(program);
    command.args(["--run", "all"]).arg(directory);
    summary_of(command)
}

/// A recording for each process: a shell's children, each of which runs one of some programs.
fn write(directory: &Path) -> Result<()> {
    fs::create_dir_all(directory).with_context(|| format!("making {}", directory.display()))?;
    let mut programs: Vec<Builder> = (0..PROGRAMS).map(program).collect();
    for number in 0..PROCESSES {
        let place = number as usize % PROGRAMS;
        let builder = &mut programs[place];
        begin(builder, number);
        let path = directory.join(format!("program{place}.{}.chase", builder.header.pid));
        fs::write(&path, builder.build()).with_context(|| format!("writing {}", path.display()))?;
    }
    Ok(())
}

/// Makes it the process of this number.
fn begin(builder: &mut Builder, number: u32) {
    let since = u64::from(number) * 2_000_000;
    let header = &mut builder.header;
    header.pid = 1_000 + number;
    header.parent_pid = if number == 0 { 1 } else { 1_000 };
    header.process_start = 100 + u64::from(number) / 5;
    header.clock_start.monotonic_ns = 1_000_000_000 + since;
    header.clock_start.realtime_ns = 1_700_000_000_000_000_000 + since;
}

/// One whose threads call functions in each other, for all lengths of time.
fn long_program() -> Builder {
    let mut builder = Builder::new();
    let app = builder.executable("/usr/bin/long");
    let library = builder.object("/usr/lib/liblong.so");
    let slots: Vec<_> = (0..LARGE_FUNCTIONS)
        .map(|at| builder.slot(app, Some(library), &format!("function_{at}")))
        .collect();
    for thread in 0..LARGE_THREADS {
        let thread = builder.thread(&format!("thread {thread}"));
        let mut timeline = builder.timeline(thread);
        for (at, &outer) in slots.iter().enumerate() {
            timeline.enter(outer);
            for (other, &inner) in slots.iter().enumerate().filter(|&(other, _)| other != at) {
                for ticks in [50, 900, 20_000, 300_000] {
                    timeline.calls(inner, ticks + other as u64, 3);
                }
            }
            timeline.work(1_000).leave();
        }
        timeline.end();
    }
    builder.end(END_EXIT, 0);
    builder
}

fn program(number: usize) -> Builder {
    let mut builder = Builder::new();
    let app = builder.executable(&format!("/usr/bin/program{number}"));
    let libraries: Vec<_> =
        (0..4).map(|at| builder.object(&format!("/usr/lib/libpart{at}.so"))).collect();
    let slots: Vec<_> = (0..IMPORTS)
        .map(|at| builder.slot(app, Some(libraries[at % 4]), &format!("function_{}", at + number)))
        .collect();
    let main = builder.thread("main");
    let mut timeline = builder.timeline(main);
    for (at, &slot) in slots.iter().enumerate() {
        timeline.work(2_000).calls(slot, 300 + at as u64, 1 + (at * number) as u64 % 40);
    }
    timeline.end();
    builder.end(END_EXIT, 0);
    builder
}
