//! What single events cost real programs: those of slow calls, against none, and those of all calls, against the times of all.
//!
//! Slow calls are rare, and what their events cost is less than runs differ. So the run without events is taken twice in each
//! round: how far one of these is from the other is what the mean over programs is held against.

use anyhow::{Result, anyhow};

use crate::bench::{Bench, Under};
use crate::real::{Same, geometric_means, milliseconds};
use crate::report::{Figure, Report};
use crate::turns::{Limit, Spread, Turn, in_turns, paired};
use crate::workloads::{self, Workload};

const PART: &str = "events";
/// Events of all calls, times what it takes to time all.
const ALL_BAR: f64 = 1.3;
const MEAN: &str = "slow: geometric mean";
const LIMIT: Limit = Limit { least: 3, most: 25, time: std::time::Duration::from_secs(30) };

/// What a row is of: wall times as ratios.
struct Ratios {
    slow: Vec<f64>,
    /// Of one run without events to the other.
    none: Vec<f64>,
}

pub(crate) fn measure(bench: &Bench, report: &mut Report) -> Result<()> {
    let workloads = workloads::prepare(&bench.directory(PART)?)?;
    let mut all = Vec::new();
    for workload in &workloads {
        all.extend(of_program(bench, report, workload));
    }
    mean(report, &all);
    Ok(())
}

fn of_program(bench: &Bench, report: &mut Report, workload: &Workload) -> Option<Ratios> {
    let same = Same::default();
    let run = |under, events| -> Result<f64> {
        let command = workload.command.as_ref().map_err(|why| anyhow!("{why:#}"))?;
        let variables = [("CHASE_EVENTS", events)];
        let run = bench.run_with(&workload.directory, under, &variables, command)?;
        same.check(&run, workload)?;
        Ok(milliseconds(&run))
    };
    let [none, slow, again, timed, events] = in_turns(
        bench.limit(LIMIT),
        [
            Turn::new(|| run(Under::Chase, "off")),
            Turn::new(|| run(Under::Chase, "")),
            Turn::new(|| run(Under::Chase, "off")),
            Turn::new(|| run(Under::ChaseAll, "")),
            Turn::new(|| run(Under::ChaseAll, "all")),
        ],
    );
    if let Err(why) = &workload.command {
        report.skipped(PART, workload.what, &format!("{why:#}"));
        return None;
    }
    let ratio = |with: &[f64], without: &[f64]| paired(with, without, |with, none| with / none);
    let what = format!("{}: all ÷ all calls timed", workload.what);
    match (timed, events) {
        (Ok(timed), Ok(events)) => report.measured(Figure {
            part: PART,
            what,
            unit: "×",
            bar: Some(ALL_BAR),
            values: ratio(&events, &timed),
            details: vec![("all timed", "ms", timed), ("events", "ms", events)],
        }),
        (Err(why), _) | (_, Err(why)) => {
            report.failed(PART, &what, Some(ALL_BAR), &format!("{why:#}"));
        }
    }
    let what = format!("{}: slow ÷ off", workload.what);
    let three = || Ok::<_, anyhow::Error>((none?, slow?, again?));
    match three() {
        Ok((none, slow, again)) => {
            let ratios = Ratios { slow: ratio(&slow, &none), none: ratio(&again, &none) };
            report.measured(Figure {
                part: PART,
                what,
                unit: "×",
                bar: None,
                values: ratios.slow.clone(),
                details: vec![
                    ("off ÷ off", "×", ratios.none.clone()),
                    ("off", "ms", none),
                    ("slow", "ms", slow),
                ],
            });
            Some(ratios)
        }
        Err(why) => {
            report.failed(PART, &what, None, &format!("{why:#}"));
            None
        }
    }
}

/// A row: the mean over programs, which is to be no further up than a quarter of the means of nothing against nothing.
fn mean(report: &mut Report, all: &[Ratios]) {
    let means = |of: fn(&Ratios) -> &Vec<f64>| {
        geometric_means(&all.iter().map(|ratios| of(ratios).clone()).collect::<Vec<_>>())
    };
    let none = means(|ratios| &ratios.none);
    let Some(noise) = Spread::of_values(&none) else {
        return report.skipped(PART, MEAN, "there is no figure for any program");
    };
    report.measured(Figure {
        part: PART,
        what: format!("{MEAN}, at most the upper quartile of off ÷ off"),
        unit: "×",
        bar: Some(noise.high),
        values: means(|ratios| &ratios.slow),
        details: vec![("off ÷ off", "×", none)],
    });
}
