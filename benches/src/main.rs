//! Measures what chase costs, against the bare run and against its peers.
//!
//! Every figure comes from runs taken in turns (bare, chase, bare, chase, ...), so that a machine
//! that slows down slows all of them; it is given as a median with its quartiles. Rows that have a
//! bar say whether it is met; what can't be measured here says why.
//!
//! Constraints: needs gcc at run time; every run has a time limit and the whole takes less than
//! five minutes; nothing is written but the JSON that was asked for. It does not look into
//! recordings: it makes sure that there is one, and makes large ones for the report to read.

mod analysis;
mod bench;
mod calls;
mod memory;
mod programs;
mod real;
mod report;
mod startup;
mod syscalls;
mod turns;

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::{Parser, ValueEnum};

use bench::Bench;
use report::Report;

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
    /// Measure only these
    #[arg(long, value_enum, value_delimiter = ',', value_name = "PART")]
    only: Vec<Part>,
    /// Share of the usual time to spend: 0.2 for a quick look, 5 for narrow quartiles
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0)]
    effort: f64,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Part {
    /// Nanoseconds added per call
    Calls,
    /// Milliseconds added to the start of a program with many objects
    Startup,
    /// Memory added to the process
    Memory,
    /// What a system call that is watched takes more
    Syscalls,
    /// Wall time of real programs
    Real,
    /// Time and memory of a report on large recordings
    Analysis,
}

impl Part {
    fn run(self, bench: &Bench, report: &mut Report) -> Result<()> {
        match self {
            Self::Calls => calls::measure(bench, report),
            Self::Startup => startup::measure(bench, report),
            Self::Memory => memory::measure(bench, report),
            Self::Syscalls => syscalls::measure(bench, report),
            Self::Real => real::measure(bench, report),
            Self::Analysis => analysis::measure(bench, report),
        }
    }

    fn name(self) -> String {
        self.to_possible_value().map_or_else(String::new, |v| v.get_name().to_owned())
    }
}

fn main() -> ExitCode {
    match run(&Options::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            // Nobody is left to tell if stderr is closed.
            let _ = writeln!(std::io::stderr(), "chase-benches: {error:#}");
            ExitCode::from(2)
        }
    }
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
    let bench = Bench::new(lib, options.effort)?;
    let mut report = Report::default();
    for part in Part::value_variants() {
        if !options.only.is_empty() && !options.only.contains(part) {
            continue;
        }
        let start = Instant::now();
        write!(std::io::stderr(), "measuring {} ... ", part.name())?;
        // One part that can't run must not hide the figures of the others.
        if let Err(error) = part.run(&bench, &mut report) {
            report.failed(&part.name(), "all", None, &format!("{error:#}"));
        }
        let seconds = start.elapsed().max(Duration::from_millis(1)).as_secs_f64();
        writeln!(std::io::stderr(), "{seconds:.1} s")?;
    }
    write!(std::io::stdout().lock(), "{}", report.table())?;
    if let Some(path) = &options.json {
        let json = serde_json::to_string_pretty(&report.with_host(&bench))?;
        std::fs::write(path, json + "\n")
            .with_context(|| format!("writing the figures to {}", path.display()))?;
    }
    Ok(report.all_bars_met())
}
