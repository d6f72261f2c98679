//! How long a report takes, and what memory, for recordings of three sizes and a large one, and for
//! fleets: many recordings of one program.
//!
//! Memory is anonymous memory: pages of the files that were mapped are the system's to take back.

use std::cell::RefCell;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use chase_recorder::builder::Builder;

use crate::bench::Bench;
use crate::report::{Figure, Report};
use crate::turns::{Limit, Turn, in_turns};

const PART: &str = "analysis";
/// Contexts of each thread.
const CONTEXTS: usize = 50;
const THREADS: [usize; 3] = [2_500, 5_000, 10_000];
/// Seconds and MB (10⁶ bytes) for the last of them.
const BAR_TIME: f64 = 2.0;
const BAR_MEMORY: f64 = 500.0;
/// Threads of the large recording (of about a gigabyte), which have twice the contexts, and seconds
/// for its report.
const LARGE_THREADS: usize = 20_000;
const BAR_LARGE: f64 = 10.0;
/// Recordings of the fleets, threads of each, and seconds for the report of the last fleet.
const FLEETS: [usize; 3] = [250, 500, 1_000];
const FLEET_THREADS: usize = 16;
const BAR_FLEET: f64 = 10.0;

const LIMIT: Limit = Limit { least: 3, most: 5, time: Duration::from_secs(20) };

/// What a report took.
#[derive(Clone, Copy)]
pub(crate) struct Cost {
    pub(crate) seconds: f64,
    /// Most anonymous memory at one time, bytes.
    pub(crate) bytes: f64,
}

pub(crate) fn measure(bench: &Bench, report: &mut Report) -> Result<()> {
    let program = bench.lib.with_file_name("chase-report");
    ensure!(program.is_file(), "no report at {}: cargo build --release", program.display());
    let directory = bench.directory(PART)?;
    let write = |threads| -> Result<Subject> {
        let path = directory.join(format!("pool-{threads}.chase"));
        let what = format!("{threads} threads × {CONTEXTS} contexts");
        save(&path, &pool(threads, CONTEXTS))?;
        Ok(Subject { what, each: "thread", parts: threads, paths: vec![path] })
    };
    let subjects = THREADS.into_iter().map(write).collect::<Result<Vec<_>>>()?;
    compare(bench, &program, &subjects, BAR_TIME, report)?;

    let path = directory.join("large.chase");
    save(&path, &pool(LARGE_THREADS, 2 * CONTEXTS))?;
    let bytes = fs::metadata(&path)?.len() as f64;
    let cost = summary(&program, std::slice::from_ref(&path))?;
    fs::remove_file(path)?;
    let what = "a large recording".to_owned();
    report.measured(Figure {
        part: PART,
        what: what.clone(),
        unit: "s",
        bar: Some(BAR_LARGE),
        values: vec![cost.seconds],
        details: vec![("file", "MB", vec![bytes / 1e6])],
    });
    memory(report, &what, Some(BAR_MEMORY), vec![cost.bytes / 1e6]);

    let files = fleet(&directory.join("fleet"), FLEETS[FLEETS.len() - 1])?;
    let subject = |recordings: usize| Subject {
        what: format!("a fleet of {recordings} recordings"),
        each: "recording",
        parts: recordings,
        paths: files[..recordings].to_vec(),
    };
    compare(bench, &program, &FLEETS.map(subject), BAR_FLEET, report)
}

/// What a report is made of.
struct Subject {
    what: String,
    /// What it has many of, and how many.
    each: &'static str,
    parts: usize,
    paths: Vec<PathBuf>,
}

/// Measures reports of `subjects` in turns; time and memory of the last one have bars.
fn compare(
    bench: &Bench,
    program: &Path,
    subjects: &[Subject],
    bar_time: f64,
    report: &mut Report,
) -> Result<()> {
    let [small, middle, large] = subjects else { bail!("three sizes, not {}", subjects.len()) };
    let costs = RefCell::new([const { Vec::new() }; 3]);
    let run = |at: usize, subject: &Subject| -> Result<f64> {
        let cost = summary(program, &subject.paths)?;
        costs.borrow_mut()[at].push(cost.bytes / 1e6);
        Ok(cost.seconds)
    };
    let times = in_turns(
        bench.limit(LIMIT),
        [Turn::new(|| run(0, small)), Turn::new(|| run(1, middle)), Turn::new(|| run(2, large))],
    );
    for (at, (subject, seconds)) in subjects.iter().zip(times).enumerate() {
        let bar = |bar| (at + 1 == subjects.len()).then_some(bar);
        let what = subject.what.clone();
        match seconds {
            Ok(values) => {
                let each = values.iter().map(|s| s * 1e6 / subject.parts as f64).collect();
                report.measured(Figure {
                    part: PART,
                    what,
                    unit: "s",
                    bar: bar(bar_time),
                    values,
                    details: vec![(subject.each, "µs", each)],
                });
            }
            Err(why) => report.failed(PART, &what, bar(bar_time), &format!("{why:#}")),
        }
        let megabytes = std::mem::take(&mut costs.borrow_mut()[at]);
        memory(report, &subject.what, bar(BAR_MEMORY), megabytes);
    }
    Ok(())
}

fn memory(report: &mut Report, what: &str, bar: Option<f64>, values: Vec<f64>) {
    let what = format!("{what}, memory");
    report.measured(Figure { part: PART, what, unit: "MB", bar, values, details: Vec::new() });
}

/// A summary of what is at `paths`, with everything that is computed for it.
fn summary(program: &Path, paths: &[PathBuf]) -> Result<Cost> {
    let mut command = Command::new(program);
    command.args(paths);
    summary_of(command)
}

/// What a command took that prints a report.
pub(crate) fn summary_of(mut command: Command) -> Result<Cost> {
    let start = Instant::now();
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .with_context(|| format!("starting {command:?}"))?;
    let status = format!("/proc/{}/status", child.id());
    let mut kib = 0.0_f64;
    let exit = loop {
        if let Some(exit) = child.try_wait()? {
            break exit;
        }
        let text = fs::read_to_string(&status).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("RssAnon:"));
        let found = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
        kib = kib.max(found.unwrap_or(0.0));
        std::thread::sleep(Duration::from_millis(2));
    };
    let seconds = start.elapsed().as_secs_f64();
    ensure!(exit.success(), "{command:?} failed");
    Ok(Cost { seconds, bytes: kib * 1024.0 })
}

fn save(path: &Path, builder: &Builder) -> Result<()> {
    fs::write(path, builder.build()).with_context(|| format!("writing {}", path.display()))
}

/// Recordings of one program on as many machines, some 0.6 MB each.
fn fleet(directory: &Path, recordings: usize) -> Result<Vec<PathBuf>> {
    fs::create_dir_all(directory).with_context(|| format!("making {}", directory.display()))?;
    let mut builder = pool(FLEET_THREADS, CONTEXTS);
    let write = |number: usize| -> Result<PathBuf> {
        let header = &mut builder.header;
        header.boot_id[..8].copy_from_slice(&number.to_le_bytes());
        header.pid = 1_000 + number as u32;
        header.clock_start.realtime_ns += 1_000_000_000;
        let path = directory.join(format!("pool-{number:04}.chase"));
        save(&path, &builder)?;
        Ok(path)
    };
    (0..recordings).map(write).collect()
}

/// A recording of a pool whose threads all do much the same, in chains of calls.
fn pool(threads: usize, contexts: usize) -> Builder {
    let mut builder = Builder::new();
    let app = builder.executable("/opt/pool/bin/pool");
    let libraries: Vec<_> =
        (0..5).map(|number| builder.object(&format!("/opt/pool/lib/lib{number}.so"))).collect();
    let outer: Vec<_> = (0..contexts / 2)
        .map(|at| builder.slot(app, Some(libraries[at % 5]), &format!("outer_{at}")))
        .collect();
    let inner: Vec<_> = (0..contexts / 2)
        .map(|at| {
            let (from, to) = (libraries[at % 5], libraries[(at + 1) % 5]);
            builder.slot(from, Some(to), &format!("inner_{at}"))
        })
        .collect();
    let main = builder.thread("pool");
    let start = builder.object_mut(app).bias + 0x1a40;
    for number in 0..threads as u64 {
        let thread = builder.thread(&format!("worker-{number}"));
        let record = builder.thread_mut(thread);
        record.start_routine_avma = start;
        record.start_ticks += number / 50 * 1_000_000;
        let mut timeline = builder.timeline(thread);
        for (at, (&outer, &inner)) in outer.iter().zip(&inner).enumerate() {
            let ticks = 500 + (number * 7_919 + at as u64 * 104_729) % 1_000;
            timeline.enter(outer).calls(inner, ticks, 40).call(inner, ticks * 30).leave();
            timeline.calls(outer, ticks * 4, 20);
        }
        timeline.end();
    }
    let now = builder.now_ticks() - builder.header.clock_start.ticks;
    builder.timeline(main).work(now).end();
    for id in [app].into_iter().chain(libraries) {
        let record = builder.object_mut(id);
        record.build_id[..20].fill(id.0 as u8 + 1);
        record.build_id_len = 20;
    }
    builder
}
