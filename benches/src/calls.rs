//! What a call costs: nanoseconds added, and how that compares with two bare timestamp reads.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Result;

use crate::bench::{Bench, Under, installed};
use crate::programs::{gcc, source};
use crate::report::{Figure, Report};
use crate::turns::{Limit, Spread, Turn, in_turns, paired};

const PART: &str = "calls";
/// Times the cost of two timestamp reads: where every call is timed, and where hot ones are sampled.
const BAR: f64 = 1.45;
const SAMPLED_BAR: f64 = 0.2;
/// Below this a call can't have been timed, and the bar would be met by doing nothing.
const TIMED: f64 = 0.5;
const THREADS: [u64; 3] = [1, 2, 8];

/// Calls per run, over all threads: a tenth of a second under chase.
const CALLS: u64 = 4_000_000;
/// Where most are only counted, so many take as long, and what the first ones cost is no matter.
const COUNTED_CALLS: u64 = 40_000_000;
/// uftrace writes 32 bytes per call.
const UFTRACE_CALLS: u64 = 200_000;
/// ltrace stops the process twice per call.
const LTRACE_CALLS: u64 = 2_000;

const LIMIT: Limit = Limit { least: 3, most: 11, time: Duration::from_secs(5) };

/// How the program reaches the library, and how it is linked for that.
const VARIANTS: [(&str, &str); 3] =
    [("-z lazy", "-Wl,-z,lazy"), ("-z now", "-Wl,-z,now"), ("-fno-plt", "-fno-plt")];

pub(crate) fn measure(bench: &Bench, report: &mut Report) -> Result<()> {
    let directory = bench.directory(PART)?;
    let programs = build(&directory)?;
    for ((variant, _), program) in VARIANTS.iter().zip(&programs) {
        for threads in THREADS {
            let what = format!("all, {variant}, {}", plural(threads));
            let program = Loop { program, mode: "call", threads };
            against_reads(bench, report, Under::ChaseAll, &program, what);
        }
    }
    // The way most distributions link.
    let program = &programs[1];
    let nested = Loop { program, mode: "nested", threads: 1 };
    let what = "all, -z now, 1 thread, nested".to_owned();
    against_reads(bench, report, Under::ChaseAll, &nested, what);
    for (timing, under) in [("adaptive", Under::Chase), ("count", Under::ChaseCount)] {
        for threads in THREADS {
            let what = format!("{timing}, -z now, {}", plural(threads));
            let program = Loop { program, mode: "call", threads };
            against_reads(bench, report, under, &program, what);
        }
    }
    peers(bench, report, program);
    Ok(())
}

/// One way to run the program.
#[derive(Clone, Copy)]
struct Loop<'a> {
    program: &'a Path,
    mode: &'a str,
    threads: u64,
}

impl Loop<'_> {
    /// CPU nanoseconds per iteration; wall nanoseconds where the cost is in another process.
    fn run(self, bench: &Bench, under: Under, calls: u64) -> Result<f64> {
        let program = self.program.display().to_string();
        let calls = (calls / self.threads).to_string();
        let threads = self.threads.to_string();
        let command = [program.as_str(), self.mode, &threads, &calls];
        bench.run(under, &command)?.number(usize::from(under == Under::Ltrace))
    }
}

/// A row: what chase adds to each call, in two timestamp reads.
fn against_reads(
    bench: &Bench,
    report: &mut Report,
    under: Under,
    program: &Loop<'_>,
    what: String,
) {
    let timed = under == Under::ChaseAll;
    let (bar, calls) = if timed { (BAR, CALLS) } else { (SAMPLED_BAR, COUNTED_CALLS) };
    let run = |mode, under| {
        // Time stamp reads are slow in any case.
        let calls = if mode == program.mode { calls } else { CALLS };
        Loop { mode, ..*program }.run(bench, under, calls)
    };
    let measured = in_turns(
        bench.limit(LIMIT),
        [
            Turn::new(|| run(program.mode, Under::Nothing)),
            Turn::new(|| run(program.mode, under)),
            Turn::new(|| run("stamps", Under::Nothing)),
            Turn::new(|| run("stamped", Under::Nothing)),
        ],
    );
    let [Ok(bare), Ok(chase), Ok(reads), Ok(around)] = measured else {
        let why = measured.into_iter().find_map(Result::err).map(|e| format!("{e:#}"));
        return report.failed(PART, &what, Some(bar), &why.unwrap_or_default());
    };
    let calls = if program.mode == "nested" { 2.0 } else { 1.0 };
    let added = paired(&chase, &bare, |chase, bare| (chase - bare) / calls);
    let ratios = paired(&added, &reads, |added, reads| added / reads);
    if timed && Spread::of(&ratios).is_some_and(|ratio| ratio.median < TIMED) {
        let why = "less is added than one time stamp read takes, so these calls are not timed";
        return report.failed(PART, &what, Some(bar), why);
    }
    report.measured(Figure {
        part: PART,
        what,
        unit: "×",
        bar: Some(bar),
        values: ratios,
        details: vec![
            ("added", "ns", added),
            ("two reads", "ns", reads),
            ("bare", "ns", bare),
            // Less than two reads, as the processor makes the call meanwhile.
            ("bare with two reads around", "ns", around),
        ],
    });
}

/// What others add, in two timestamp reads. No bar: they are there to be compared with.
fn peers(bench: &Bench, report: &mut Report, program: &Path) {
    let peers = [
        ("uftrace", Under::Uftrace, UFTRACE_CALLS, &[1, 8][..]),
        ("ltrace", Under::Ltrace, LTRACE_CALLS, &[1][..]),
    ];
    for (name, under, calls, threads) in peers {
        if installed(name).is_none() {
            report.skipped(PART, name, "not installed");
            continue;
        }
        for &threads in threads {
            let what = format!("{name}, -z now, {}", plural(threads));
            let program = Loop { program, mode: "call", threads };
            let limit = Limit { least: 2, most: 5, time: Duration::from_secs(3) };
            let measured = in_turns(
                bench.limit(limit),
                [
                    Turn::new(|| program.run(bench, Under::Nothing, CALLS)),
                    Turn::new(|| program.run(bench, under, calls)),
                    Turn::new(|| {
                        Loop { mode: "stamps", ..program }.run(bench, Under::Nothing, CALLS)
                    }),
                ],
            );
            let [Ok(bare), Ok(peer), Ok(reads)] = measured else {
                let why = measured.into_iter().find_map(Result::err).map(|e| format!("{e:#}"));
                report.skipped(PART, &what, &why.unwrap_or_default());
                continue;
            };
            let added = paired(&peer, &bare, |peer, bare| peer - bare);
            let values = paired(&added, &reads, |added, reads| added / reads);
            let details = vec![("added", "ns", added), ("two reads", "ns", reads)];
            report.measured(Figure { part: PART, what, unit: "×", bar: None, values, details });
        }
    }
}

fn build(directory: &Path) -> Result<Vec<PathBuf>> {
    let source = |name| source(name).display().to_string();
    let library = ["-fPIC", "-shared", "-L.", "-Wl,-rpath,$ORIGIN"];
    let empty = source("empty.c");
    gcc(directory, &[&library[..], &[&empty, "-o", "libempty.so"]].concat())?;
    let nested = source("nested.c");
    gcc(directory, &[&library[..], &[&nested, "-o", "libnested.so", "-lempty"]].concat())?;
    let calls = source("calls.c");
    let mut programs = Vec::new();
    for (i, (_, flag)) in VARIANTS.iter().enumerate() {
        let program = directory.join(format!("calls-{i}"));
        let name = program.display().to_string();
        let of = [*flag, "-pthread", &calls, "-o", &name, "-L.", "-lnested", "-lempty"];
        gcc(directory, &[&of[..], &["-Wl,-rpath,$ORIGIN"]].concat())?;
        programs.push(program);
    }
    Ok(programs)
}

fn plural(threads: u64) -> String {
    if threads == 1 { "1 thread".to_owned() } else { format!("{threads} threads") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_programs_run_bare_in_every_mode() {
        let bench = Bench::new(PathBuf::new(), 1.0).unwrap();
        let programs = build(&bench.directory(PART).unwrap()).unwrap();
        for program in &programs {
            for mode in ["call", "nested", "stamps", "stamped"] {
                let program = Loop { program, mode, threads: 2 };
                let ns = program.run(&bench, Under::Nothing, 100_000).unwrap();
                assert!(ns > 0.1 && ns < 1000.0, "{mode}: {ns} ns");
            }
        }
        let unknown = Loop { program: &programs[0], mode: "other", threads: 1 };
        let error = unknown.run(&bench, Under::Nothing, 1).unwrap_err().to_string();
        assert!(error.contains("exited with 2: usage:"), "{error}");
    }

    #[test]
    fn a_run_under_chase_must_leave_a_recording() {
        // What the loader can't preload it complains of, and the program runs without it.
        let bench = Bench::new(PathBuf::from("/nonexistent/libchase.so"), 1.0).unwrap();
        let error = bench.run(Under::Chase, &["true"]).err().unwrap().to_string();
        assert!(error.starts_with("true under chase left no recording"), "{error}");
    }
}
