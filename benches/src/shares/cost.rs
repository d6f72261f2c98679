//! What samples cost: processor time of a program, of what it starts and of the companion that watches it, without samples
//! and with them. How much of that the interrupts of the clock take by themselves is in the details: an interrupt costs next to
//! nothing on some machines, and tens of microseconds on virtual ones.

use std::time::Duration;

use anyhow::{Result, anyhow, bail};

use super::clock::Clock;
use super::programs::Program;
use crate::bench::{Bench, Under};
use crate::children::cpu_seconds;
use crate::report::{Figure, Report};
use crate::turns::{Limit, OUT_OF_TIME, Turn, in_turns, paired};

pub(super) const PART: &str = "samples";
/// Percent more.
const BAR: f64 = 1.0;
/// Single runs differ by more than the bar.
const LIMIT: Limit = Limit { least: 5, most: 25, time: Duration::from_secs(200) };

pub(super) fn measure(bench: &Bench, report: &mut Report, programs: &[Program]) {
    let deadline = bench.deadline();
    for program in programs {
        if deadline.is_over() {
            report.skipped(PART, program.what, OUT_OF_TIME);
            continue;
        }
        let what = format!("{}: samples add", program.what);
        let seconds = |sample| seconds(bench, program, sample);
        let measured = in_turns(
            bench.limit(LIMIT),
            [
                Turn::new(|| seconds("off")),
                Turn::new(|| seconds("")),
                Turn::new(|| {
                    let _clock = Clock::start()?;
                    seconds("off")
                }),
            ],
        );
        match measured {
            [Ok(off), Ok(on), Ok(clock)] => report.measured(Figure {
                part: PART,
                what,
                unit: "%",
                bar: Some(BAR),
                values: paired(&on, &off, percent_more),
                details: vec![
                    ("clock alone adds", "%", paired(&clock, &off, percent_more)),
                    ("without", "s", off),
                    ("with", "s", on),
                ],
            }),
            [Err(why), ..] | [_, Err(why), _] | [.., Err(why)] => {
                report.failed(PART, &what, Some(BAR), &format!("{why:#}"));
            }
        }
    }
}

fn percent_more(with: f64, without: f64) -> f64 {
    100.0 * (with / without - 1.0)
}

/// User and system time, with samples as `CHASE_SAMPLE` says. The companion starts the program here, and ends after it, so that
/// its own time is in that of this process's children.
fn seconds(bench: &Bench, program: &Program, sample: &str) -> Result<f64> {
    let command = program.command.as_ref().map_err(|why| anyhow!("{why:#}"))?;
    let output = bench.fresh();
    let path = output.display().to_string();
    let companion = bench.lib.with_file_name("chase-companion").display().to_string();
    let preload = format!("LD_PRELOAD={}", bench.lib.display());
    let (to, sample) = (format!("CHASE_OUTPUT={path}"), format!("CHASE_SAMPLE={sample}"));
    let words = ["env", &sample, &companion, "--output", &path, "--", "env", &preload, &to];
    let mut all: Vec<String> = words.iter().map(|&word| word.to_owned()).collect();
    all.extend_from_slice(command);
    let before = cpu_seconds();
    bench.run_in(&program.directory, Under::Nothing, &all)?;
    let taken = cpu_seconds() - before;
    let was_watched = std::fs::read_dir(&output)?
        .any(|entry| entry.is_ok_and(|e| e.path().extension().is_some_and(|e| e == "syscalls")));
    let _ = std::fs::remove_dir_all(&output);
    if was_watched { Ok(taken) } else { bail!("{} was not watched", program.what) }
}
