//! What the hook takes of the process's memory.

use std::time::Duration;

use anyhow::Result;

use crate::bench::{Bench, Run, Under};
use crate::programs::{gcc, source};
use crate::report::{Figure, Report};
use crate::turns::{Limit, Turn, in_turns, paired};

const PART: &str = "memory";
/// MB (10⁶ bytes) in a small program.
const BAR_PROGRAM: f64 = 4.0;
/// kB (10³ bytes) for each further thread.
const BAR_THREAD: f64 = 64.0;
const THREADS: u32 = 1000;
/// Bytes of what Linux calls a kB.
const KIB: f64 = 1024.0;

const LIMIT: Limit = Limit { least: 3, most: 5, time: Duration::from_secs(6) };

/// What is counted, and where the program prints it.
const KINDS: [(&str, usize); 2] = [("resident", 0), ("private dirty", 1)];

pub(crate) fn measure(bench: &Bench, report: &mut Report) -> Result<()> {
    let directory = bench.directory(PART)?;
    let program = directory.join("memory").display().to_string();
    let source = source("memory.c").display().to_string();
    gcc(&directory, &["-fno-builtin", "-pthread", &source, "-o", &program])?;

    let threads = THREADS.to_string();
    for (kind, at) in KINDS {
        let bytes = |run: Run| Ok(run.number(at)? * KIB);
        let run = |under, threads: &str| bytes(bench.run(under, &[&program, threads])?);
        let [bare, chase, bare_threads, chase_threads] = in_turns(
            bench.limit(LIMIT),
            [
                Turn::new(|| run(Under::Nothing, "0")),
                Turn::new(|| run(Under::Chase, "0")),
                Turn::new(|| run(Under::Nothing, &threads)),
                Turn::new(|| run(Under::Chase, &threads)),
            ],
        );
        let what = format!("small program, {kind}");
        // The bars are on what is resident, the larger of the two.
        let bar = |bar| (at == 0).then_some(bar);
        let (bare, chase) = match (bare, chase) {
            (Ok(bare), Ok(chase)) => (bare, chase),
            (Err(why), _) | (_, Err(why)) => {
                report.failed(PART, &what, bar(BAR_PROGRAM), &format!("{why:#}"));
                continue;
            }
        };
        let small = paired(&chase, &bare, |chase, bare| chase - bare);
        let mega = |values: &[f64]| values.iter().map(|v| v / 1e6).collect::<Vec<_>>();
        report.measured(Figure {
            part: PART,
            what,
            unit: "MB",
            bar: bar(BAR_PROGRAM),
            values: mega(&small),
            details: vec![("bare", "MB", mega(&bare)), ("chase", "MB", mega(&chase))],
        });

        let what = format!("each of {THREADS} further threads, {kind}");
        let (bare, chase) = match (bare_threads, chase_threads) {
            (Ok(bare), Ok(chase)) => (bare, chase),
            (Err(why), _) | (_, Err(why)) => {
                report.failed(PART, &what, bar(BAR_THREAD), &format!("{why:#}"));
                continue;
            }
        };
        let large = paired(&chase, &bare, |chase, bare| chase - bare);
        let each = |large, small| (large - small) / f64::from(THREADS) / 1e3;
        report.measured(Figure {
            part: PART,
            what,
            unit: "kB",
            bar: bar(BAR_THREAD),
            values: paired(&large, &small, each),
            details: vec![("bare", "MB", mega(&bare)), ("chase", "MB", mega(&chase))],
        });
    }
    Ok(())
}
