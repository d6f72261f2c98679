//! How long a report takes, and what memory, for recordings of three sizes and a large one.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
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

const LIMIT: Limit = Limit { least: 3, most: 5, time: Duration::from_secs(20) };

/// What a report took.
#[derive(Clone, Copy)]
struct Cost {
    seconds: f64,
    /// Most memory at one time, bytes.
    bytes: f64,
}

pub(crate) fn measure(bench: &Bench, report: &mut Report) -> Result<()> {
    let program = bench.lib.with_file_name("chase-report");
    ensure!(program.is_file(), "no report at {}: cargo build --release", program.display());
    let directory = bench.directory(PART)?;
    let files = THREADS.map(|threads| write(&directory, threads, CONTEXTS));
    let [small, middle, large] = files;
    let (small, middle, large) = (small?, middle?, large?);
    let costs = std::cell::RefCell::new([const { Vec::new() }; 3]);
    let run = |at: usize, file: &Path| -> Result<f64> {
        let cost = summary(&program, file)?;
        costs.borrow_mut()[at].push(cost.bytes / 1e6);
        Ok(cost.seconds)
    };
    let times = in_turns(
        bench.limit(LIMIT),
        [Turn::new(|| run(0, &small)), Turn::new(|| run(1, &middle)), Turn::new(|| run(2, &large))],
    );
    for (at, (threads, seconds)) in THREADS.into_iter().zip(times).enumerate() {
        let what = format!("{threads} threads × {CONTEXTS} contexts");
        let last = at + 1 == THREADS.len();
        let bar = |bar| last.then_some(bar);
        match seconds {
            Ok(values) => {
                let each = values.iter().map(|s| s * 1e6 / threads as f64).collect();
                let details = vec![("each thread", "µs", each)];
                let bar = bar(BAR_TIME);
                report.measured(Figure {
                    part: PART,
                    what: what.clone(),
                    unit: "s",
                    bar,
                    values,
                    details,
                });
            }
            Err(why) => report.failed(PART, &what, bar(BAR_TIME), &format!("{why:#}")),
        }
        let values = std::mem::take(&mut costs.borrow_mut()[at]);
        let (what, bar) = (format!("{what}, memory"), bar(BAR_MEMORY));
        report.measured(Figure { part: PART, what, unit: "MB", bar, values, details: Vec::new() });
    }
    let file = write(&directory, LARGE_THREADS, 2 * CONTEXTS)?;
    let bytes = fs::metadata(&file)?.len() as f64;
    let cost = summary(&program, &file)?;
    report.measured(Figure {
        part: PART,
        what: "a large recording".to_owned(),
        unit: "s",
        bar: Some(BAR_LARGE),
        values: vec![cost.seconds],
        details: vec![("file", "MB", vec![bytes / 1e6]), ("memory", "MB", vec![cost.bytes / 1e6])],
    });
    fs::remove_file(file)?;
    Ok(())
}

/// A summary, with everything that is computed for it.
fn summary(program: &Path, file: &Path) -> Result<Cost> {
    let start = Instant::now();
    let mut child = Command::new(program)
        .arg(file)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .with_context(|| format!("starting {}", program.display()))?;
    let status = format!("/proc/{}/status", child.id());
    let mut kib = 0.0_f64;
    let exit = loop {
        if let Some(exit) = child.try_wait()? {
            break exit;
        }
        let text = fs::read_to_string(&status).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let found = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
        kib = kib.max(found.unwrap_or(0.0));
        std::thread::sleep(Duration::from_millis(2));
    };
    let seconds = start.elapsed().as_secs_f64();
    ensure!(exit.success(), "{} failed on {}", program.display(), file.display());
    Ok(Cost { seconds, bytes: kib * 1024.0 })
}

/// A recording of a pool whose threads all do much the same, in chains of calls.
fn write(directory: &Path, threads: usize, contexts: usize) -> Result<PathBuf> {
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
    let path = directory.join(format!("pool-{threads}.chase"));
    fs::write(&path, builder.build()).with_context(|| format!("writing {}", path.display()))?;
    Ok(path)
}
