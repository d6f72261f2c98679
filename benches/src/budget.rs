//! What `CHASE_BUDGET=2%` leaves of the cost of calls that are many and do little.

use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::Result;

use crate::bench::{Bench, Under};
use crate::programs::{gcc, source};
use crate::report::{Figure, Report};
use crate::turns::{Limit, Turn, in_turns, paired};

const PART: &str = "budget";
const LIMIT: Limit = Limit { least: 3, most: 11, time: Duration::from_secs(40) };
/// A second or two: nothing is unhooked in the first quarter of one.
const CALLS: u32 = 1_200_000_000;
const LEAST_CALLS: u32 = 600_000_000;
const LINES: u32 = 2_000_000;
const CHANGED_CALLS: u32 = 50_000_000;

pub(crate) fn measure(bench: &Bench, report: &mut Report) -> Result<()> {
    let directory = bench.directory(PART)?;
    changed(bench, report, &directory)?;
    let empty = source("empty.c").display().to_string();
    gcc(&directory, &["-fPIC", "-shared", &empty, "-o", "libempty.so"])?;
    let (program, code) = (directory.join("budget").display().to_string(), source("budget.c"));
    let libraries = ["-L.", "-lempty", "-Wl,-rpath,$ORIGIN", "-fno-builtin", "-Wl,-z,now"];
    let of = [&code.display().to_string(), "-o", &program];
    gcc(&directory, &[&of[..], &libraries].concat())?;
    let calls = bench.count(CALLS, LEAST_CALLS).to_string();
    let command = [program.as_str(), &calls];
    rows(report, bench, "a loop of empty calls", "ns a call", |under| {
        bench.run(under, &command)?.number(0)
    });

    fs::write(directory.join("lines"), lines(LINES))?;
    let sort = ["sort", "--parallel=1", "-o", "sorted", "lines"];
    rows(report, bench, "sort, 2M lines", "ms", |under| {
        Ok(bench.run_in(&directory, under, &sort)?.wall.as_secs_f64() * 1e3)
    });
    Ok(())
}

/// What remains of a call that is unhooked: its entry was changed.
fn changed(bench: &Bench, report: &mut Report, directory: &Path) -> Result<()> {
    let (program, code) = (directory.join("changed").display().to_string(), source("changed.c"));
    gcc(directory, &["-no-pie", &code.display().to_string(), "-o", &program])?;
    let command = [program.as_str(), &CHANGED_CALLS.to_string()];
    let what = "a call through an entry that was changed, and changed back";
    let [more] = in_turns(
        bench.limit(LIMIT),
        [Turn::new(|| bench.run(Under::Nothing, &command)?.number(0))],
    );
    match more {
        Ok(values) => report.measured(Figure {
            part: PART,
            what: what.to_owned(),
            unit: "ns more",
            bar: None,
            values,
            details: Vec::new(),
        }),
        Err(why) => report.failed(PART, what, None, &format!("{why:#}")),
    }
    Ok(())
}

/// Rows of one program: without a budget and with one, as multiples of the bare run's.
fn rows(
    report: &mut Report,
    bench: &Bench,
    what: &str,
    unit: &'static str,
    run: impl Fn(Under) -> Result<f64>,
) {
    let [bare, adaptive, budget] = in_turns(
        bench.limit(LIMIT),
        [
            Turn::new(|| run(Under::Nothing)),
            Turn::new(|| run(Under::Chase)),
            Turn::new(|| run(Under::ChaseBudget)),
        ],
    );
    for (how, chase) in [("adaptive", adaptive), ("CHASE_BUDGET=2%", budget)] {
        let what = format!("{what}, {how}");
        match (&bare, chase) {
            (Ok(bare), Ok(chase)) => report.measured(Figure {
                part: PART,
                what,
                unit: "×",
                bar: None,
                values: paired(&chase, bare, |chase, bare| chase / bare),
                details: vec![("bare", unit, bare.clone()), ("chase", unit, chase)],
            }),
            (Err(why), _) => report.failed(PART, &what, None, &format!("{why:#}")),
            (_, Err(why)) => report.failed(PART, &what, None, &format!("{why:#}")),
        }
    }
}

/// So many lines in no order, the same each time.
fn lines(count: u32) -> String {
    let mut text = String::new();
    let mut state = 1_u64;
    for line in 0..count {
        // Knuth's MMIX generator.
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        // Writing to a string can't fail.
        let _ = writeln!(text, "{:x} line {line}", state >> 16);
    }
    text
}
