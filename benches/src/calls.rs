//! What a call costs: nanoseconds added, and how that compares with two bare timestamp reads.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::bench::{Bench, Under};
use crate::peers::{self, Peer};
use crate::programs::{gcc, source};
use crate::report::{Figure, Report};
use crate::turns::{Limit, Spread, Turn, in_turns, paired};

const PART: &str = "calls";
/// Times the cost of two timestamp reads: where every call is timed, and where hot ones are sampled.
const BAR: f64 = 1.45;
const SAMPLED_BAR: f64 = 0.2;
/// Below this a call can't have been timed, and the bar would be met by doing nothing.
const TIMED: f64 = 0.5;
const THREADS: [u64; 4] = [1, 2, 8, 64];
/// Times what is added with one thread, where eight share two processors.
const SHARING_BAR: f64 = 1.1;

/// Calls per run, over all threads: a tenth of a second under chase.
const CALLS: u64 = 4_000_000;
/// Where most are only counted, so many take as long, and what the first ones cost is no matter.
const COUNTED_CALLS: u64 = 40_000_000;
/// uftrace writes 32 bytes per call.
const UFTRACE_CALLS: u64 = 200_000;
/// Others stop the process twice per call, or send it into the kernel.
const FEW_CALLS: u64 = 2_000;

const LIMIT: Limit = Limit { least: 7, most: 11, time: Duration::from_secs(5) };
/// Runs that take both processors, of which others may take some for a while: long ones, and more of them.
const SHARING_CALLS: u64 = 5 * CALLS;
const SHARING_LIMIT: Limit = Limit { least: 9, most: 21, time: Duration::from_secs(5) };
const PEER_LIMIT: Limit = Limit { least: 2, most: 5, time: Duration::from_secs(5) };
const PATIENCE: Duration = Duration::from_secs(20);

/// How the program reaches the library, and how it is linked for that.
const VARIANTS: [(&str, &str); 3] =
    [("-z lazy", "-Wl,-z,lazy"), ("-z now", "-Wl,-z,now"), ("-fno-plt", "-fno-plt")];

/// What the program does in a loop, and how many calls that is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    Call,
    /// A call within a call.
    Nested,
    /// Each within another.
    Deep,
    /// Two time stamp reads instead of a call.
    Stamps,
    /// A call between two time stamp reads.
    Stamped,
}

impl Mode {
    fn name(self) -> &'static str {
        match self {
            Self::Call => "call",
            Self::Nested => "nested",
            Self::Deep => "deep",
            Self::Stamps => "stamps",
            Self::Stamped => "stamped",
        }
    }

    fn calls(self) -> u64 {
        match self {
            Self::Nested => 2,
            Self::Deep => 64,
            Self::Call | Self::Stamps | Self::Stamped => 1,
        }
    }
}

pub(crate) fn measure(bench: &Bench, report: &mut Report) -> Result<()> {
    let directory = bench.directory(PART)?;
    let programs = build(&directory)?;
    // The way most distributions link.
    let now = &programs[1];
    for (timing, under, bar) in
        [("all", Under::ChaseAll, BAR), ("adaptive", Under::Chase, SAMPLED_BAR)]
    {
        for ((variant, _), program) in VARIANTS.iter().zip(&programs) {
            for threads in THREADS {
                let what = format!("{timing}, {variant}, {}", plural(threads));
                let program = Loop { program, mode: Mode::Call, threads };
                against_reads(bench, report, under, bar, &program, what);
            }
        }
        for (mode, name) in [(Mode::Nested, "nested"), (Mode::Deep, "64 deep")] {
            let what = format!("{timing}, -z now, 1 thread, {name}");
            let program = Loop { program: now, mode, threads: 1 };
            // What calls other libraries is timed in either case.
            against_reads(bench, report, under, BAR, &program, what);
        }
    }
    for threads in THREADS {
        let what = format!("count, -z now, {}", plural(threads));
        let program = Loop { program: now, mode: Mode::Call, threads };
        against_reads(bench, report, Under::ChaseCount, SAMPLED_BAR, &program, what);
    }
    for (timing, under, bar) in
        [("all", Under::ChaseAll, Some(SHARING_BAR)), ("adaptive", Under::Chase, None)]
    {
        let what = format!("{timing}, -z now, 8 threads on 2 processors ÷ 1 thread");
        sharing(bench, report, under, bar, now, what);
    }
    if bench.peers {
        against_peers(bench, report, &directory, now);
    }
    Ok(())
}

/// One way to run the program.
#[derive(Clone, Copy)]
struct Loop<'a> {
    program: &'a Path,
    mode: Mode,
    threads: u64,
}

impl Loop<'_> {
    /// The program and its arguments for `calls` calls over all threads.
    fn command(self, calls: u64) -> [String; 4] {
        let iterations = calls / self.threads / self.mode.calls();
        let program = self.program.display().to_string();
        [program, self.mode.name().to_owned(), self.threads.to_string(), iterations.to_string()]
    }

    /// CPU nanoseconds per call.
    fn run(self, bench: &Bench, under: Under, calls: u64) -> Result<f64> {
        let run = bench.run(under, &self.command(calls))?;
        Ok(run.number(0)? / self.mode.calls() as f64)
    }
}

/// A row: what chase adds to each call, in two timestamp reads.
fn against_reads(
    bench: &Bench,
    report: &mut Report,
    under: Under,
    bar: f64,
    program: &Loop<'_>,
    what: String,
) {
    let sampled = bar < TIMED;
    let calls = if sampled { COUNTED_CALLS } else { CALLS };
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
            Turn::new(|| run(Mode::Stamps, Under::Nothing)),
            Turn::new(|| run(Mode::Stamped, Under::Nothing)),
        ],
    );
    let [Ok(bare), Ok(chase), Ok(reads), Ok(around)] = measured else {
        let why = measured.into_iter().find_map(Result::err).map(|e| format!("{e:#}"));
        return report.failed(PART, &what, Some(bar), &why.unwrap_or_default());
    };
    let added = paired(&chase, &bare, |chase, bare| chase - bare);
    let ratios = paired(&added, &reads, |added, reads| added / reads);
    let all = under == Under::ChaseAll;
    if all && Spread::of_values(&ratios).is_some_and(|ratio| ratio.median < TIMED) {
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

/// A row: what is added to each call where eight threads share two processors, as a multiple of
/// what is added with one thread. It is processor time, which waiting for a turn does not count in.
fn sharing(
    bench: &Bench,
    report: &mut Report,
    under: Under,
    bar: Option<f64>,
    program: &Path,
    what: String,
) {
    let calls = if under == Under::ChaseAll { SHARING_CALLS } else { COUNTED_CALLS };
    let run = |threads, under| Loop { program, mode: Mode::Call, threads }.run(bench, under, calls);
    let measured = TwoProcessors::take().map(|_both| {
        in_turns(
            bench.limit(SHARING_LIMIT),
            [
                Turn::new(|| run(1, Under::Nothing)),
                Turn::new(|| run(1, under)),
                Turn::new(|| run(8, Under::Nothing)),
                Turn::new(|| run(8, under)),
            ],
        )
    });
    let measured = match measured {
        Ok(measured) => measured,
        Err(why) => return report.skipped(PART, &what, &format!("{why:#}")),
    };
    let [Ok(bare), Ok(chase), Ok(bare_8), Ok(chase_8)] = measured else {
        let why = measured.into_iter().find_map(Result::err).map(|e| format!("{e:#}"));
        return report.failed(PART, &what, bar, &why.unwrap_or_default());
    };
    let added = paired(&chase, &bare, |chase, bare| chase - bare);
    let added_8 = paired(&chase_8, &bare_8, |chase, bare| chase - bare);
    report.measured(Figure {
        part: PART,
        what,
        unit: "×",
        bar,
        values: paired(&added_8, &added, |eight, one| eight / one),
        details: vec![("8 threads added", "ns", added_8), ("1 thread added", "ns", added)],
    });
}

/// While it lives, this thread and what it starts run on two processors.
struct TwoProcessors(CpuSet);

impl TwoProcessors {
    fn take() -> Result<Self> {
        let before = sched_getaffinity(None).context("asking for the processors")?;
        let mut allowed = (0..CpuSet::MAX_CPU).filter(|&cpu| before.is_set(cpu));
        let mut two = CpuSet::new();
        for _ in 0..2 {
            two.set(allowed.next().context("there are no two processors")?);
        }
        sched_setaffinity(None, &two).context("keeping to two processors")?;
        Ok(Self(before))
    }
}

impl Drop for TwoProcessors {
    fn drop(&mut self) {
        // It was allowed before.
        let _ = sched_setaffinity(None, &self.0);
    }
}

/// What others add, in two timestamp reads, and how what chase adds compares with the one that
/// records the same calls. No other bar: they are there to be compared with.
fn against_peers(bench: &Bench, report: &mut Report, directory: &Path, program: &Path) {
    let mut all = peers::library_calls();
    all.push(peers::uprobes("bpftrace, uprobes", &directory.join("libempty.so"), &["empty"]));
    for peer in peers::usable(bench, report, PART, all) {
        let (calls, threads) =
            if peer.is_in_process() { (UFTRACE_CALLS, &[1, 8][..]) } else { (FEW_CALLS, &[1][..]) };
        for &threads in threads {
            let program = Loop { program, mode: Mode::Call, threads };
            against_peer(bench, report, &peer, program, calls);
        }
    }
}

fn against_peer(bench: &Bench, report: &mut Report, peer: &Peer, program: Loop<'_>, calls: u64) {
    let case = format!("-z now, {}", plural(program.threads));
    let what = format!("{}, {case}", peer.name);
    let run = |mode, under| Loop { mode, ..program }.run(bench, under, CALLS);
    let under_peer = || {
        let directory = program.program.parent().context("no directory")?;
        let run = peer.run(bench, directory, &program.command(calls), PATIENCE)?;
        // Wall time where the cost is in another process.
        run.number(usize::from(!peer.is_in_process()))
    };
    let measured = in_turns(
        bench.limit(PEER_LIMIT),
        [
            Turn::new(|| run(Mode::Call, Under::Nothing)),
            Turn::new(under_peer),
            Turn::new(|| run(Mode::Stamps, Under::Nothing)),
            Turn::new(|| run(Mode::Call, Under::ChaseAll)),
        ],
    );
    let [bare, under_peer, reads, chase] = measured;
    let under_peer = match under_peer {
        Ok(values) => values,
        Err(why) => return peers::gave_none(report, PART, &what, &why, None),
    };
    let (bare, reads, chase) = match (bare, reads, chase) {
        (Ok(bare), Ok(reads), Ok(chase)) => (bare, reads, chase),
        (Err(why), ..) | (_, Err(why), _) | (.., Err(why)) => {
            return report.failed(PART, &what, None, &format!("{why:#}"));
        }
    };
    let added = |with: &[f64]| paired(with, &bare, |with, bare| with - bare);
    let (peer_added, chase_added) = (added(&under_peer), added(&chase));
    report.measured(Figure {
        part: PART,
        what,
        unit: "×",
        bar: None,
        values: paired(&peer_added, &reads, |added, reads| added / reads),
        details: vec![("added", "ns", peer_added.clone()), ("two reads", "ns", reads)],
    });
    if peer.records_the_same() {
        report.measured(Figure {
            part: PART,
            what: format!("all ÷ {}, {case}", peer.name),
            unit: "×",
            bar: Some(peers::BAR),
            values: paired(&chase_added, &peer_added, |chase, peer| chase / peer),
            details: vec![("chase added", "ns", chase_added), ("it added", "ns", peer_added)],
        });
    }
}

fn build(directory: &Path) -> Result<Vec<PathBuf>> {
    let source = |name| source(name).display().to_string();
    let library = ["-fPIC", "-shared", "-L.", "-Wl,-rpath,$ORIGIN"];
    let empty = source("empty.c");
    gcc(directory, &[&library[..], &[&empty, "-o", "libempty.so"]].concat())?;
    let nested = source("nested.c");
    gcc(directory, &[&library[..], &[&nested, "-o", "libnested.so", "-lempty"]].concat())?;
    let deep = source("deep.c");
    for (here, there) in [("ping", "pong"), ("pong", "ping")] {
        let (here_is, there_is) = (format!("-DHERE={here}"), format!("-DTHERE={there}"));
        let output = format!("lib{here}.so");
        gcc(directory, &[&library[..], &[&here_is, &there_is, &deep, "-o", &output]].concat())?;
    }
    let calls = source("calls.c");
    let libraries = ["-L.", "-lnested", "-lempty", "-lping", "-lpong", "-Wl,-rpath,$ORIGIN"];
    let mut programs = Vec::new();
    for (i, (_, flag)) in VARIANTS.iter().enumerate() {
        let program = directory.join(format!("calls-{i}"));
        let name = program.display().to_string();
        let of = [*flag, "-pthread", &calls, "-o", &name];
        gcc(directory, &[&of[..], &libraries].concat())?;
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
            for mode in [Mode::Call, Mode::Nested, Mode::Deep, Mode::Stamps, Mode::Stamped] {
                let program = Loop { program, mode, threads: 2 };
                let ns = program.run(&bench, Under::Nothing, 100_000).unwrap();
                assert!(ns > 0.1 && ns < 1000.0, "{}: {ns} ns", mode.name());
            }
        }
        let command = [programs[0].display().to_string(), "other".to_owned()];
        let error = bench.run(Under::Nothing, &command).err().unwrap().to_string();
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
