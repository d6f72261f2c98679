//! Measures what chase costs, against the bare run and against its peers.
//!
//! Every figure comes from runs taken in turns (bare, chase, bare, chase, ...), so that a machine
//! that slows down slows all of them; it is given as a median with its quartiles. Rows that have a
//! bar say whether it is met; what can't be measured here says why.
//!
//! Constraints: needs gcc at run time; what else is missing, or not allowed, costs a row. Every run
//! has a time limit; the whole takes half an hour, and an hour with peers. Nothing is
//! written but what was asked for. It looks into recordings as a user does, through the
//! report, except to count waits; and makes large ones for the report to read.

mod accuracy;
mod agree;
mod analysis;
mod bench;
mod calls;
mod children;
mod companion;
mod events;
mod load;
mod machine;
mod many;
mod memory;
mod peers;
mod processes;
mod programs;
mod rayon_work;
mod real;
mod redis;
mod report;
mod shares;
mod starts;
mod startup;
mod stated;
mod syscalls;
mod text;
mod turns;
mod waits;
mod workloads;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::{Parser, ValueEnum};
use serde::Serialize;

use bench::Bench;
use machine::{Machine, Watch};
use report::{Report, Row};

/// Measure what chase costs
#[derive(Parser)]
#[command(after_help = "Exit status: 0 all bars met, 1 a bar missed or not measured, 2 trouble.")]
struct Options {
    /// The hook to measure
    #[arg(long, value_name = "PATH", default_value = "target/release/libchase.so")]
    lib: PathBuf,
    /// Write all figures here too, as JSON
    #[arg(long, value_name = "PATH")]
    json: Option<PathBuf>,
    /// Write the figures to docs/benchmarks.md too, in place of those of the same parts
    #[arg(long)]
    write_docs: bool,
    /// Measure other tools too, where they are installed: uftrace, ltrace, strace, perf, bpftrace
    #[arg(long)]
    peers: bool,
    /// Compare threads that wait often with another build: its hook, with its companion beside it
    #[arg(long, value_name = "PATH")]
    before: Option<PathBuf>,
    /// Measure only these
    #[arg(long, value_enum, value_delimiter = ',', value_name = "PART")]
    only: Vec<Part>,
    #[command(flatten)]
    many: many::Sources,
    /// Do some work on rayon's threads instead, to be measured
    #[arg(long, hide = true)]
    rayon_work: bool,
    /// Share of the usual time to spend: 0.2 for a quick look, 5 for narrow quartiles
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0)]
    effort: f64,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Part {
    /// Nanoseconds added per call
    Calls,
    /// Microseconds added to a thread, a fork, an exec
    Processes,
    /// How near estimates are to the truth
    Accuracy,
    /// Milliseconds added to the start of a program with many objects
    Startup,
    /// Milliseconds added to the start of small programs, one or many, with and without a companion
    Starts,
    /// Memory added to the process
    Memory,
    /// What a system call that is watched takes more
    Syscalls,
    /// What a wait that is watched takes more, and whether any is lost
    Waits,
    /// Where the processor was, against perf
    Where,
    /// What samples cost
    Samples,
    /// What chase says that it cost, against what it did cost
    Stated,
    /// Whether what is estimated is as near to what is timed as is stated
    Agree,
    /// Wall time of real programs
    Real,
    /// What single events cost them
    Events,
    /// Throughput and latency of a server
    Redis,
    /// Time and memory of a report on large recordings
    Analysis,
    /// The same for a run of very many processes
    Load,
    /// Real runs of very many processes; only if it is named
    Many,
}

impl Part {
    /// Whether it is measured unless others are named.
    fn is_usual(self) -> bool {
        self != Self::Many
    }

    fn run(self, options: &Options, bench: &Bench, report: &mut Report) -> Result<()> {
        match self {
            Self::Calls => calls::measure(bench, report),
            Self::Processes => processes::measure(bench, report),
            Self::Accuracy => accuracy::measure(bench, report),
            Self::Startup => startup::measure(bench, report),
            Self::Starts => starts::measure(bench, report),
            Self::Memory => memory::measure(bench, report),
            Self::Syscalls => syscalls::measure(bench, report),
            Self::Waits => waits::measure(bench, report),
            Self::Where => shares::measure(bench, report),
            Self::Samples => shares::measure_cost(bench, report),
            Self::Stated => stated::measure(bench, report),
            Self::Agree => agree::measure(bench, report),
            Self::Real => real::measure(bench, report),
            Self::Events => events::measure(bench, report),
            Self::Redis => redis::measure(bench, report),
            Self::Analysis => analysis::measure(bench, report),
            Self::Load => load::measure(bench, report),
            Self::Many => many::measure(bench, &options.many, report),
        }
    }

    fn name(self) -> String {
        self.to_possible_value().map_or_else(String::new, |v| v.get_name().to_owned())
    }
}

fn main() -> ExitCode {
    let options = Options::parse();
    if options.rayon_work {
        return rayon_work::run();
    }
    match run(&options) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            // Nobody is left to tell if stderr is closed.
            let _ = writeln!(std::io::stderr(), "chase-benches: {error:#}");
            ExitCode::from(2)
        }
    }
}

/// What is written as JSON.
#[derive(Serialize)]
struct All<'a> {
    machine: &'a Machine,
    effort: f64,
    rows: &'a [Row],
}

/// Whether all bars are met.
fn run(options: &Options) -> Result<bool> {
    if !(0.01..=100.0).contains(&options.effort) {
        bail!("--effort {}: expected a factor between 0.01 and 100", options.effort);
    }
    let lib = std::fs::canonicalize(&options.lib).with_context(|| {
        let build = "build it with `cargo build --release`, or name another with --lib";
        format!("no hook at {}: {build}", options.lib.display())
    })?;
    let mut bench = Bench::new(lib, options.effort)?;
    bench.peers = options.peers;
    if let Some(before) = &options.before {
        let found = std::fs::canonicalize(before)
            .with_context(|| format!("--before: no hook at {}", before.display()))?;
        bench.before = Some(found);
    }
    let watch = Watch::start();
    // Nobody is left to tell if stderr is closed.
    let tell: fn(&Row) = |row| drop(writeln!(std::io::stderr(), "  {}", text::line(row)));
    let mut report = Report { follower: Some(tell), ..Report::default() };
    for part in Part::value_variants() {
        let is_wanted = match options.only.as_slice() {
            [] => part.is_usual(),
            only => only.contains(part),
        };
        if !is_wanted {
            continue;
        }
        let start = Instant::now();
        writeln!(std::io::stderr(), "measuring {}", part.name())?;
        // One part that can't run must not hide the figures of the others.
        if let Err(error) = part.run(options, &bench, &mut report) {
            report.failed(&part.name(), "all", None, &format!("{error:#}"));
        }
        let seconds = start.elapsed().max(Duration::from_millis(1)).as_secs_f64();
        writeln!(std::io::stderr(), "  {} took {seconds:.1} s", part.name())?;
    }
    write!(std::io::stdout().lock(), "{}", text::table(&report))?;
    let machine = watch.end();
    let save = |path: &Path, text: &str| {
        std::fs::write(path, text)
            .with_context(|| format!("writing the figures to {}", path.display()))
    };
    if let Some(path) = &options.json {
        let all = All { machine: &machine, effort: options.effort, rows: &report.rows };
        save(path, &(serde_json::to_string_pretty(&all)? + "\n"))?;
    }
    if options.write_docs {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/benchmarks.md");
        let before = std::fs::read_to_string(&path).unwrap_or_default();
        let parts: Vec<String> = Part::value_variants().iter().map(|part| part.name()).collect();
        save(&path, &text::page(&report, &machine, options.effort, (&before, &parts)))?;
    }
    Ok(report.all_bars_met())
}
