//! What samples cost: processor time of a program, of what it starts and of the companion that watches it, without samples
//! and with them. How much of that the interrupts of the clock take by themselves is in the details: an interrupt costs next to
//! nothing on some machines, and tens of microseconds on virtual ones.

use std::time::Duration;

use anyhow::{Result, anyhow, bail};

use super::clock::Clock;
use super::programs::Program;
use crate::bench::{Bench, Under};
use crate::children::cpu_seconds;
use crate::real::geometric_means;
use crate::report::{Figure, Report};
use crate::turns::{Limit, Turn, in_turns, paired};

pub(super) const PART: &str = "samples";
/// Percent more.
const BAR: f64 = 1.0;
/// Single runs differ by more than the bar: of fewer, a program's row has none.
const LIMIT: Limit = Limit { least: 5, most: 25, time: Duration::from_secs(200) };

pub(super) fn measure(bench: &Bench, report: &mut Report, programs: &[Program]) {
    let deadline = bench.deadline();
    let mut all = Vec::new();
    for (at, program) in programs.iter().enumerate() {
        if let Err(why) = &program.command {
            report.skipped(PART, program.what, &format!("{why:#}"));
            continue;
        }
        let limit = deadline.part(bench.limit(LIMIT), programs.len() - at);
        all.extend(of_program(bench, report, program, limit));
    }
    let ratios: Vec<Vec<f64>> = all.into_iter().filter(|ratios| !ratios.is_empty()).collect();
    let what = "geometric mean of all: samples add".to_owned();
    if ratios.is_empty() {
        return report.skipped(PART, &what, "nothing was measured");
    }
    let is_enough = ratios.iter().all(|ratios| ratios.len() >= LIMIT.least);
    let values: Vec<f64> =
        geometric_means(&ratios).into_iter().map(|ratio| percent_more(ratio, 1.0)).collect();
    let details = vec![("programs", "", vec![ratios.len() as f64])];
    let bar = is_enough.then_some(BAR);
    report.measured(Figure { part: PART, what, unit: "%", bar, values, details });
}

/// A row; gives the ratios. Of a few rounds, whatever else the machine does decides, so such a row has no bar of its own.
fn of_program(
    bench: &Bench,
    report: &mut Report,
    program: &Program,
    limit: Limit,
) -> Option<Vec<f64>> {
    let what = format!("{}: samples add", program.what);
    let seconds = |sample| seconds(bench, program, sample);
    let measured = in_turns(
        limit,
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
        [Ok(off), Ok(on), Ok(clock)] => {
            let ratios = paired(&on, &off, |on, off| on / off);
            report.measured(Figure {
                part: PART,
                what,
                unit: "%",
                bar: (on.len() >= LIMIT.least).then_some(BAR),
                values: paired(&on, &off, percent_more),
                details: vec![
                    ("rounds", "", vec![on.len() as f64]),
                    ("clock alone adds", "%", paired(&clock, &off, percent_more)),
                    ("without", "s", off),
                    ("with", "s", on),
                ],
            });
            Some(ratios)
        }
        [Err(why), ..] | [_, Err(why), _] | [.., Err(why)] => {
            report.failed(PART, &what, Some(BAR), &format!("{why:#}"));
            None
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
