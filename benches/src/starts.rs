//! What the starts of small programs cost: one, whose user waits for it, and hundreds, as in a script.
//!
//! The library is preloaded, as by `LD_PRELOAD` alone. A single program is measured where no companion is at work, so that
//! its process starts one, and where one listens already. That of many is measured with one that listens, and beside
//! a preloaded library that does nothing.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

use crate::bench::{Bench, Under, unwatchable};
use crate::companion::{Listening, Watched};
use crate::programs::{gcc, source};
use crate::report::{Figure, Report};
use crate::turns::{Limit, Turn, in_turns, paired};

const PART: &str = "starts";
/// Milliseconds that the companion adds to a program, and that chase adds to each of many.
const COMPANION_BAR: f64 = 10.0;
const EACH_BAR: f64 = 0.3;
/// Programs that a loop starts, and how few at least.
const MANY: u32 = 300;
const LEAST_MANY: u32 = 60;

const ONE_LIMIT: Limit = Limit { least: 7, most: 41, time: Duration::from_secs(30) };
const MANY_LIMIT: Limit = Limit { least: 5, most: 15, time: Duration::from_secs(40) };

const STARTED: &str = "true: the companion adds, which it starts";
const FOUND: &str = "true: the companion adds, which listens";

/// What is preloaded, and whether there is a companion.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Preloaded {
    Nothing,
    Empty,
    Chase,
    /// With a companion that the process has to start.
    ChaseStarts,
    /// With one that listens.
    ChaseFinds,
}

/// A program that is started in these ways.
struct Start<'a> {
    bench: &'a Bench,
    /// A library that does nothing.
    empty: PathBuf,
    command: Vec<String>,
}

pub(crate) fn measure(bench: &Bench, report: &mut Report) -> Result<()> {
    let directory = bench.directory(PART)?;
    let empty = directory.join("libempty.so");
    let text = source("empty.c").display().to_string();
    gcc(&directory, &["-fPIC", "-shared", &text, "-o", &empty.display().to_string()])?;
    let one = Start { bench, empty: empty.clone(), command: vec!["/bin/true".to_owned()] };
    one_start(report, &one);
    let many = bench.count(MANY, LEAST_MANY);
    let script = format!("i=0; while [ $i -lt {many} ]; do /bin/true; i=$((i + 1)); done");
    let command = vec!["/bin/sh".to_owned(), "-c".to_owned(), script];
    many_starts(report, &Start { bench, empty, command }, many);
    Ok(())
}

fn one_start(report: &mut Report, one: &Start<'_>) {
    if let Some(why) = unwatchable() {
        for what in [STARTED, FOUND] {
            report.skipped(PART, what, &why);
        }
        return;
    }
    let [without, starts, finds] = in_turns(
        one.bench.limit(ONE_LIMIT),
        [
            Turn::new(|| one.run(Preloaded::Chase)),
            Turn::new(|| one.run(Preloaded::ChaseStarts)),
            Turn::new(|| one.run(Preloaded::ChaseFinds)),
        ],
    );
    for (what, with) in [(STARTED, starts), (FOUND, finds)] {
        match (&without, with) {
            (Ok(without), Ok(with)) => report.measured(Figure {
                part: PART,
                what: what.to_owned(),
                unit: "ms",
                bar: Some(COMPANION_BAR),
                values: paired(&with, without, |with, without| with - without),
                details: vec![("without", "ms", without.clone()), ("with", "ms", with)],
            }),
            (Err(why), _) => report.failed(PART, what, Some(COMPANION_BAR), &format!("{why:#}")),
            (_, Err(why)) => report.failed(PART, what, Some(COMPANION_BAR), &format!("{why:#}")),
        }
    }
}

fn many_starts(report: &mut Report, many: &Start<'_>, number: u32) {
    let unwatchable = unwatchable();
    let [bare, empty, chase, watched] = in_turns(
        many.bench.limit(MANY_LIMIT),
        [
            Turn::new(|| many.run(Preloaded::Nothing)),
            Turn::new(|| many.run(Preloaded::Empty)),
            Turn::new(|| many.run(Preloaded::Chase)),
            Turn::new(|| match &unwatchable {
                None => many.run(Preloaded::ChaseFinds),
                Some(why) => bail!("{why}"),
            }),
        ],
    );
    let bare = match bare {
        Ok(bare) => bare,
        Err(why) => return report.failed(PART, "a loop of true", None, &format!("{why:#}")),
    };
    let rows = [
        ("an empty library", None, None, empty),
        ("chase without the companion", Some(EACH_BAR), None, chase),
        ("chase with the companion", Some(EACH_BAR), unwatchable.as_deref(), watched),
    ];
    for (how, bar, impossible, with) in rows {
        let what = format!("{number} × true: {how} adds to each");
        match with {
            Ok(with) => report.measured(Figure {
                part: PART,
                what,
                unit: "ms",
                bar,
                values: paired(&with, &bare, |with, bare| (with - bare) / f64::from(number)),
                details: vec![
                    ("bare", "ms each", each(&bare, number)),
                    ("with", "ms each", each(&with, number)),
                ],
            }),
            Err(why) => match impossible {
                Some(why) => report.skipped(PART, &what, why),
                None => report.failed(PART, &what, bar, &format!("{why:#}")),
            },
        }
    }
}

fn each(all: &[f64], number: u32) -> Vec<f64> {
    all.iter().map(|all| all / f64::from(number)).collect()
}

impl Start<'_> {
    /// Milliseconds of wall time. A companion is gone when this returns.
    fn run(&self, preloaded: Preloaded) -> Result<f64> {
        let output = self.bench.fresh();
        fs::create_dir(&output).with_context(|| format!("making {}", output.display()))?;
        let timed = self.run_in(preloaded, &output);
        let _ = fs::remove_dir_all(&output);
        timed
    }

    fn run_in(&self, preloaded: Preloaded, output: &Path) -> Result<f64> {
        let companion = self.bench.lib.with_file_name("chase-companion");
        let listening = match preloaded {
            Preloaded::ChaseFinds => Some(Listening::start(&companion, output)?),
            _ => None,
        };
        let library = match preloaded {
            Preloaded::Nothing => String::new(),
            Preloaded::Empty => self.empty.display().to_string(),
            _ => self.bench.lib.display().to_string(),
        };
        let is_watched = matches!(preloaded, Preloaded::ChaseStarts | Preloaded::ChaseFinds);
        // In each case, `env` starts the program.
        let mut words = vec![
            "env".to_owned(),
            format!("LD_PRELOAD={library}"),
            format!("CHASE_OUTPUT={}", output.display()),
            format!("CHASE_SYSCALLS={}", if is_watched { "auto" } else { "off" }),
        ];
        words.extend_from_slice(&self.command);
        let run = self.bench.run(Under::Nothing, &words)?;
        if preloaded == Preloaded::ChaseStarts {
            // It may still be getting ready, for nobody.
            Watched::in_directory(output)?.end()?;
        }
        drop(listening);
        let has = |end: &str| -> Result<bool> {
            let names = fs::read_dir(output)?.flatten().map(|entry| entry.file_name());
            Ok(names.into_iter().any(|name| name.to_string_lossy().ends_with(end)))
        };
        let is_chase = !matches!(preloaded, Preloaded::Nothing | Preloaded::Empty);
        ensure!(has(".chase")? == is_chase, "recorded: {}", !is_chase);
        ensure!(preloaded != Preloaded::ChaseFinds || has(".syscalls")?, "was not watched");
        Ok(run.wall.as_secs_f64() * 1e3)
    }
}
