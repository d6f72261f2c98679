//! Where the processor was, as chase has it, against `perf record` of the same program; and, a part of its own, what the samples
//! cost.
//!
//! Runs of both are taken in turns. What is compared is the share of each object in the time on the CPU of a
//! program and all that it starts. Time in the kernel counts where the processor was in user space
//! before: chase takes that from the registers saved at the entry into the kernel, and perf, asked for
//! call chains of user space only and no deeper than one frame, gives the same. Two things are left out, each with
//! its own share in the details: what chase itself takes, which the bare program does not have, and the
//! samples without such a place (perf has none where a process has given up its memory to end).

mod clock;
mod cost;
mod perf;
mod programs;
mod said;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Result, anyhow};

use crate::bench::{Bench, Under, installed, unwatchable};
use crate::report::{Figure, Report};
use crate::turns::{Limit, OUT_OF_TIME, Spread, Turn, in_turns};
use programs::Program;

const PART: &str = "where";
/// Percent of the time of the whole program.
const BAR: f64 = 3.0;

/// A round takes about seven seconds, a third of them for `perf script`. Of fewer than three, one odd round decides.
const LIMIT: Limit = Limit { least: 3, most: 7, time: std::time::Duration::from_secs(40) };

/// What one run's samples tell.
#[derive(Default)]
struct Shares {
    /// Percent, by the name of the file that is mapped there.
    objects: BTreeMap<String, f64>,
    /// Percent of all that is in none of them: chase itself, or what has no place.
    left_out: f64,
    samples: f64,
}

impl Shares {
    /// Of times or numbers of samples; `left_out` is more of the same.
    fn of(mut objects: BTreeMap<String, f64>, left_out: f64, samples: f64) -> Self {
        let sum: f64 = objects.values().sum();
        objects.values_mut().for_each(|value| *value *= 100.0 / sum);
        Self { objects, left_out: 100.0 * left_out / (sum + left_out), samples }
    }

    fn of_object(&self, name: &str) -> f64 {
        self.objects.get(name).copied().unwrap_or(0.0)
    }
}

pub(crate) fn measure(bench: &Bench, report: &mut Report) -> Result<()> {
    let directory = bench.directory(PART)?;
    let programs = programs::prepare(&directory, false)?;
    if let Some(why) = unwatchable() {
        report.skipped(PART, "all", &why);
        return Ok(());
    }
    if installed("perf").is_none() {
        report.skipped(PART, "all", "perf is not installed");
        return Ok(());
    }
    let deadline = bench.deadline();
    for program in &programs {
        if deadline.is_over() {
            report.skipped(PART, program.what, OUT_OF_TIME);
        } else {
            against_perf(bench, report, program);
        }
    }
    Ok(())
}

/// What samples cost.
pub(crate) fn measure_cost(bench: &Bench, report: &mut Report) -> Result<()> {
    if let Some(why) = unwatchable() {
        report.skipped(cost::PART, "all", &why);
        return Ok(());
    }
    let programs = programs::prepare(&bench.directory(cost::PART)?, true)?;
    cost::measure(bench, report, &programs);
    Ok(())
}

/// A row: the object whose shares differ most.
fn against_perf(bench: &Bench, report: &mut Report, program: &Program) {
    let command = match &program.command {
        Ok(command) => command,
        Err(why) => return report.skipped(PART, program.what, &format!("{why:#}")),
    };
    let (of_perf, of_chase) = (RefCell::new(Vec::new()), RefCell::new(Vec::new()));
    let [perf, chase] = in_turns(
        bench.limit(LIMIT),
        [
            Turn::new(|| {
                let shares = perf::shares(bench, &program.directory, command)?;
                let samples = shares.samples;
                of_perf.borrow_mut().push(shares);
                Ok(samples)
            }),
            Turn::new(|| {
                let under = Under::ChaseWithSyscalls;
                let look = |output: &std::path::Path| said::shares(bench, output);
                let (_, shares) = bench.run_and_look(&program.directory, under, command, look)?;
                let samples = shares.samples;
                of_chase.borrow_mut().push(shares);
                Ok(samples)
            }),
        ],
    );
    let (samples_of_perf, samples_of_chase) = match (perf, chase) {
        (Ok(perf), Ok(chase)) => (perf, chase),
        (Err(why), _) => return report.skipped(PART, program.what, &format!("perf: {why:#}")),
        (_, Err(why)) => return report.failed(PART, program.what, Some(BAR), &format!("{why:#}")),
    };
    match widest(&of_perf.into_inner(), &of_chase.into_inner()) {
        Ok(widest) => report.measured(Figure {
            part: PART,
            what: format!("{}: most in {}", program.what, widest.object),
            unit: "points",
            bar: Some(BAR),
            values: widest.apart,
            details: vec![
                ("perf", "%", widest.perf),
                ("chase", "%", widest.chase),
                ("objects", "", vec![widest.objects as f64]),
                ("samples", "", samples_of_chase),
                ("chase itself", "%", widest.chase_itself),
                ("perf: samples", "", samples_of_perf),
                ("perf: without a place", "%", widest.without_a_place),
            ],
        }),
        Err(why) => report.failed(PART, program.what, Some(BAR), &format!("{why:#}")),
    }
}

/// The object whose shares differ most.
struct Widest {
    object: String,
    /// Points between the two, by round; negative where a round is the other way round than most.
    apart: Vec<f64>,
    perf: Vec<f64>,
    chase: Vec<f64>,
    /// How many objects there are.
    objects: usize,
    chase_itself: Vec<f64>,
    without_a_place: Vec<f64>,
}

fn widest(perf: &[Shares], chase: &[Shares]) -> Result<Widest> {
    let names: BTreeSet<&String> =
        perf.iter().chain(chase).flat_map(|s| s.objects.keys()).collect();
    let of = |shares: &[Shares], name: &str| -> Vec<f64> {
        shares.iter().map(|shares| shares.of_object(name)).collect()
    };
    let left_out =
        |shares: &[Shares]| -> Vec<f64> { shares.iter().map(|shares| shares.left_out).collect() };
    let mut widest: Option<(f64, Widest)> = None;
    for name in &names {
        let (perf_has, chase_has) = (of(perf, name), of(chase, name));
        let mut apart: Vec<f64> = perf_has.iter().zip(&chase_has).map(|(p, c)| c - p).collect();
        let Some(median) = Spread::of(&apart).map(|spread| spread.median) else { continue };
        if widest.as_ref().is_some_and(|(most, _)| *most >= median.abs()) {
            continue;
        }
        if median < 0.0 {
            apart.iter_mut().for_each(|points| *points = -*points);
        }
        widest = Some((
            median.abs(),
            Widest {
                object: (*name).clone(),
                apart,
                perf: perf_has,
                chase: chase_has,
                objects: names.len(),
                chase_itself: left_out(chase),
                without_a_place: left_out(perf),
            },
        ));
    }
    widest.map(|(_, widest)| widest).ok_or_else(|| anyhow!("there are no samples"))
}

/// By what a mapped file is known to both: its name, without links. Memory without a file has none.
fn name_of(path: &str) -> String {
    let path = path.strip_suffix(" (deleted)").unwrap_or(path);
    let real = std::fs::canonicalize(path);
    let path = real.as_deref().unwrap_or(std::path::Path::new(path));
    path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shares(of: &[(&str, f64)], left_out: f64) -> Shares {
        let objects = of.iter().map(|&(name, value)| (name.to_owned(), value)).collect();
        Shares::of(objects, left_out, 100.0)
    }

    #[test]
    fn shares_are_of_what_is_not_left_out() {
        let shares = shares(&[("a", 30.0), ("b", 10.0)], 10.0);
        assert_eq!((shares.of_object("a"), shares.of_object("b")), (75.0, 25.0));
        assert_eq!((shares.of_object("c"), shares.left_out), (0.0, 20.0));
    }

    #[test]
    fn the_widest_is_told_by_the_median_and_counts_what_only_one_has() {
        let perf = [(80.0, 20.0), (80.0, 20.0), (80.0, 20.0)]
            .map(|(a, b)| shares(&[("a", a), ("b", b)], 0.0));
        // In one round only, "a" is far off.
        let chase = [(70.0, 20.0, 10.0), (76.0, 20.0, 4.0), (77.0, 19.0, 4.0)]
            .map(|(a, b, c)| shares(&[("a", a), ("b", b), ("c", c)], 0.0));
        let widest = widest(&perf, &chase).unwrap();
        assert_eq!((widest.object.as_str(), widest.objects), ("a", 3));
        assert!((widest.apart[0] - 10.0).abs() < 1e-9 && (widest.apart[1] - 4.0).abs() < 1e-9);
        assert!(super::widest(&[], &[]).is_err());
    }

    #[test]
    fn files_are_known_by_name() {
        assert_eq!(name_of("/no/such/lib.so (deleted)"), "lib.so");
        assert_eq!(name_of("[vdso]"), "[vdso]");
    }
}
