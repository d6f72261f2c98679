//! Where the processor was, as chase has it, against `perf record` of the same program; and, a part of its own, what the samples
//! cost.
//!
//! Runs of both are taken in turns. What is compared is the share of each object in the time on the CPU of a
//! program and all that it starts. Time in the kernel counts where the processor was in user space
//! before: chase takes that from the registers saved at the entry into the kernel, and perf, asked for
//! call chains of user space only and no deeper than one frame, gives the same. Two things are left out, each with
//! its own share in the details: what chase itself takes, which the bare program does not have, and the
//! samples without such a place (perf has none where a process has given up its memory to end).
//!
//! Threads, and objects of a program whose own runs differ too much, are compared in one run that both watch. Without privilege,
//! both take samples of user space alone, for a user who has none.

mod clock;
mod cost;
mod ordinary;
mod perf;
pub(crate) mod programs;
mod said;
mod together;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Result, anyhow, ensure};

use crate::bench::{Bench, Under, installed, unwatchable};
use crate::report::{Figure, Report};
use crate::turns::{Limit, Spread, Turn, in_turns};
use ordinary::Ordinary;
use programs::Program;

const PART: &str = "where";
/// Points of the time of the whole program: an object's share, and a thread's.
const BAR: f64 = 3.0;
const THREAD_BAR: f64 = 5.0;

/// A round takes ten seconds and more, a third of them for `perf script`. Of fewer than three, one odd round would decide: such
/// rows have no bar.
const LIMIT: Limit = Limit { least: 3, most: 7, time: std::time::Duration::from_secs(40) };

/// What one run's samples tell.
#[derive(Default)]
struct Shares {
    /// Percent, by the name of the file that is mapped there; or by thread.
    objects: BTreeMap<String, f64>,
    /// Percent of all that is in none of them: chase itself, or what has no place.
    left_out: f64,
    samples: f64,
}

impl Shares {
    /// Of times or numbers of samples; `left_out` is more of the same.
    fn from_sums(mut objects: BTreeMap<String, f64>, left_out: f64, samples: f64) -> Self {
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
    let programs = programs::prepare(&directory)?;
    if installed("perf").is_none() {
        report.skipped(PART, "all", "perf is not installed");
        return Ok(());
    }
    let unwatchable = unwatchable();
    let ordinary = Ordinary::prepare(bench);
    let deadline = bench.deadline();
    for (at, program) in programs.iter().enumerate() {
        let limit = deadline.part(bench.limit(LIMIT), programs.len() - at);
        let command = match &program.command {
            Ok(command) => command,
            Err(why) => {
                report.skipped(PART, program.what, &format!("{why:#}"));
                continue;
            }
        };
        Compared { bench, program, command, unwatchable: unwatchable.as_deref() }
            .measure(report, limit, &ordinary);
    }
    Ok(())
}

/// What samples cost.
pub(crate) fn measure_cost(bench: &Bench, report: &mut Report) -> Result<()> {
    if let Some(why) = unwatchable() {
        report.skipped(cost::PART, "all", &why);
        return Ok(());
    }
    let programs = programs::prepare(&bench.directory(cost::PART)?)?;
    cost::measure(bench, report, &programs);
    Ok(())
}

/// A program that both look at.
struct Compared<'a> {
    bench: &'a Bench,
    program: &'a Program,
    command: &'a [String],
    /// Why chase can't see into the kernel here.
    unwatchable: Option<&'a str>,
}

/// What all turns of a kind have found.
#[derive(Default)]
struct Found {
    perf: RefCell<Vec<Shares>>,
    chase: RefCell<Vec<Shares>>,
}

impl Found {
    /// Keeps what a turn has found; gives the number of samples.
    fn keep(of: &RefCell<Vec<Shares>>, shares: Shares) -> f64 {
        let samples = shares.samples;
        of.borrow_mut().push(shares);
        samples
    }
}

impl Compared<'_> {
    /// Rows: the object whose shares differ most, with privilege and without, and the thread.
    fn measure(&self, report: &mut Report, limit: Limit, ordinary: &Result<Ordinary>) {
        let (full, plain, threads) = (Found::default(), Found::default(), Found::default());
        let Self { bench, program, command, .. } = *self;
        let directory = &program.directory;
        let watchable = || self.unwatchable.map_or(Ok(()), |why| Err(anyhow!("{why}")));
        let ordinary = || ordinary.as_ref().map_err(|why| anyhow!("{why:#}"));
        let [perf, chase, together, plain_perf, plain_chase] = in_turns(
            limit,
            [
                Turn::new(|| {
                    ensure!(!program.is_unsteady, "compared in one run");
                    watchable()?;
                    Ok(Found::keep(&full.perf, perf::shares(bench, directory, command)?))
                }),
                Turn::new(|| {
                    ensure!(!program.is_unsteady, "compared in one run");
                    watchable()?;
                    let under = Under::ChaseWithSyscalls;
                    let look = |output: &std::path::Path| said::shares(bench, output);
                    let (_, shares) = bench.run_and_look(directory, under, command, look)?;
                    Ok(Found::keep(&full.chase, shares))
                }),
                Turn::new(|| {
                    ensure!(program.has_threads, "one thread");
                    watchable()?;
                    let both = together::run(bench, directory, command)?;
                    if program.is_unsteady {
                        Found::keep(&full.perf, both.objects_of_perf);
                        Found::keep(&full.chase, both.objects_of_chase);
                    }
                    Found::keep(&threads.perf, both.threads_of_perf);
                    Ok(Found::keep(&threads.chase, both.threads_of_chase))
                }),
                Turn::new(|| {
                    ensure!(!program.is_unsteady, "compared in one run");
                    let shares = ordinary()?.perf(bench, directory, command)?;
                    Ok(Found::keep(&plain.perf, shares))
                }),
                Turn::new(|| {
                    ensure!(!program.is_unsteady, "compared in one run");
                    let shares = ordinary()?.chase(bench, directory, command)?;
                    Ok(Found::keep(&plain.chase, shares))
                }),
            ],
        );
        let what = program.what;
        if let Some(why) = self.unwatchable {
            report.skipped(PART, what, why);
        } else if let (false, Err(why)) = (program.is_unsteady, &perf) {
            report.skipped(PART, what, &format!("perf: {why:#}"));
        } else {
            let both = match program.is_unsteady {
                true => together.as_ref().map(drop).map_err(|why| anyhow!("{why:#}")),
                false => chase.map(drop),
            };
            row(report, what, BAR, full, both);
            if program.has_threads {
                let what = format!("{what}, by thread");
                row(report, &what, THREAD_BAR, threads, together.map(drop));
            }
        }
        if !program.is_unsteady {
            let what = format!("{what}, without privilege");
            match ordinary().and(plain_perf) {
                Ok(_) => row(report, &what, BAR, plain, plain_chase.map(drop)),
                Err(why) => report.skipped(PART, &what, &format!("{why:#}")),
            }
        }
    }
}

/// A row: what differs most, of all that was found, if nothing went wrong.
fn row(report: &mut Report, what: &str, bar: f64, found: Found, outcome: Result<()>) {
    let (perf, chase) = (found.perf.into_inner(), found.chase.into_inner());
    match outcome.and_then(|()| widest(&perf, &chase)) {
        Ok(widest) => report.measured(Figure {
            part: PART,
            what: format!("{what}: most in {}", widest.object),
            unit: "points",
            bar: (chase.len() >= LIMIT.least).then_some(bar),
            values: widest.apart,
            details: vec![
                ("perf", "%", widest.perf),
                ("chase", "%", widest.chase),
                ("rounds", "", vec![chase.len() as f64]),
                ("compared", "", vec![widest.objects as f64]),
                ("samples", "", samples(&chase)),
                ("chase itself", "%", widest.chase_itself),
                ("perf: samples", "", samples(&perf)),
                ("perf: without a place", "%", widest.without_a_place),
            ],
        }),
        Err(why) => report.failed(PART, what, Some(bar), &format!("{why:#}")),
    }
}

fn samples(of: &[Shares]) -> Vec<f64> {
    of.iter().map(|shares| shares.samples).collect()
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
        let Some(median) = Spread::of_values(&apart).map(|spread| spread.median) else { continue };
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
        Shares::from_sums(objects, left_out, 100.0)
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
