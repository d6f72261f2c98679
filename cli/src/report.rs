//! A run, read and analysed: what all views show parts of.

use std::cell::OnceCell;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use chase_analyzer::{
    Analysis, Catalog, CauseRow, CodeAddress, Finding, Groups, Image, Loaded, Ns, Run, Selection,
    Tails, Timeline, WaitObject, Watched, Workers, findings, load_run_with,
};
use clap::CommandFactory;

use crate::args::{Cli, Launched, Runs, Usage};
use crate::companion;
use crate::names::{Names, nearest};
pub(crate) use crate::places::file_name;
use crate::places::{AddressKind, Files, Places};
use crate::progress::Progress;
use crate::routines::Routines;

/// Where recordings are written unless `$CHASE_OUTPUT` says otherwise.
const DEFAULT_PATH: &str = "chase.data";
/// The part of the time that reading takes, about.
const READING: f64 = 0.3;

/// A run and its figures.
pub(crate) struct Report {
    /// The file or directory that was read, the first of several.
    pub(crate) path: PathBuf,
    /// All of them.
    pub(crate) paths: Vec<PathBuf>,
    /// Its images, files that could not be read, and how many runs are older.
    pub(crate) loaded: Loaded,
    /// Its number among the runs there, 1 for the newest, or all of them.
    pub(crate) runs: Runs,
    /// The one process that was asked for.
    pub(crate) process: Option<u32>,
    pub(crate) analysis: Analysis,
    pub(crate) names: Names,
    pub(crate) places: Places,
    groups: OnceCell<Groups>,
    tails: OnceCell<Tails>,
    findings: OnceCell<Vec<Finding>>,
    watched: OnceCell<Watched>,
    /// Where locks without a name were taken, by process and object, once somebody asks.
    pub(crate) taken_at: OnceCell<HashMap<(usize, WaitObject), String>>,
    timeline: OnceCell<Timeline>,
}

impl Report {
    /// Reads what the command line asks for.
    pub(crate) fn open(cli: &Cli) -> anyhow::Result<Self> {
        let paths = cli.paths();
        Self::read(cli, if paths.is_empty() { vec![default_path()] } else { paths })
    }

    /// Reads what is at `paths`, and of that what the command line asks for: the newest run of one
    /// path, all that is at several.
    pub(crate) fn read(cli: &Cli, paths: Vec<PathBuf>) -> anyhow::Result<Self> {
        let default = if paths.len() == 1 { Runs::Nth(1) } else { Runs::All };
        let runs = cli.source.run.unwrap_or(default);
        let mut progress = Progress::new();
        let mut loaded = match cli.source.launched {
            Some(launched) => load_launched(&paths, launched, &mut progress)?,
            None => load(&paths, runs, &mut progress)?,
        };
        if let Some(pid) = cli.source.process {
            loaded.images = of_process(loaded.images, pid)?;
        }
        for dir in &cli.source.debug_dir {
            let is_dir =
                dir.metadata().with_context(|| format!("--debug-dir {}", dir.display()))?;
            if !is_dir.is_dir() {
                bail!("--debug-dir {} is not a directory", dir.display());
            }
        }
        let mut show = |part| progress.show("analysing", READING + part * (1.0 - READING));
        let analysis =
            Analysis::new_with(&loaded.images, Selection::All, Workers::all(), &mut show);
        drop(progress);
        let places = Places::new(cli.source.debug_dir.clone());
        let process = cli.source.process;
        Ok(Self { runs, process, ..Self::of_analysis(paths, loaded, analysis, places) })
    }

    /// A run that was read and analysed.
    pub(crate) fn of_analysis(
        paths: Vec<PathBuf>,
        loaded: Loaded,
        analysis: Analysis,
        places: Places,
    ) -> Self {
        let mut report = Self {
            path: paths.first().cloned().unwrap_or_default(),
            paths,
            loaded,
            runs: Runs::Nth(1),
            process: None,
            names: Names::new(&analysis),
            analysis,
            places,
            groups: OnceCell::new(),
            tails: OnceCell::new(),
            findings: OnceCell::new(),
            watched: OnceCell::new(),
            taken_at: OnceCell::new(),
            timeline: OnceCell::new(),
        };
        let (images, analysis) = (&report.loaded.images, &report.analysis);
        let causes = chase_analyzer::object_causes(images, analysis, &report.routines());
        report.analysis.set_object_causes(causes);
        report
    }

    /// The files that its addresses are in.
    pub(crate) fn files(&self) -> Files<'_> {
        let Analysis { objects, threads, .. } = &self.analysis;
        Files { objects, images: &self.loaded.images, threads }
    }

    /// The threads in groups, named by what they run.
    pub(crate) fn groups(&self) -> &Groups {
        self.groups.get_or_init(|| Groups::new(&self.analysis, &self.routines()))
    }

    /// What names its addresses.
    pub(crate) fn routines(&self) -> Routines<'_> {
        Routines { files: self.files(), places: &self.places }
    }

    /// The function that an address of a process is in, shortened; `object` contains it.
    pub(crate) fn code(&self, process: usize, address: &CodeAddress, object: u32) -> String {
        let place = self.places.find(self.files(), process, address, AddressKind::Function);
        place.function_in_short(self.names.object(object))
    }

    /// The slowest calls of each group.
    pub(crate) fn tails(&self) -> &Tails {
        self.tails.get_or_init(|| Tails::new(&self.loaded.images, &self.analysis, self.groups()))
    }

    /// What is worth a sentence.
    pub(crate) fn findings(&self) -> &[Finding] {
        self.findings
            .get_or_init(|| findings(&self.analysis, self.groups(), self.tails(), self.watched()))
    }

    /// What threads waited for and who ended that, longest first.
    pub(crate) fn causes(&self) -> &[CauseRow] {
        &self.watched().causes
    }

    /// What only a companion has seen.
    pub(crate) fn watched(&self) -> &Watched {
        self.watched.get_or_init(|| {
            let images = &self.loaded.images;
            Watched::new(images, &self.analysis, self.groups(), &self.routines())
        })
    }

    /// What happened when.
    pub(crate) fn timeline(&self) -> &Timeline {
        self.timeline.get_or_init(|| {
            chase_analyzer::timeline(&self.loaded.images, &self.analysis, self.groups())
        })
    }

    /// A time as a fraction of all that was spent: application time and library calls.
    pub(crate) fn share(&self, time: Ns) -> f64 {
        let totals = &self.analysis.totals;
        fraction(time, totals.whole_ns().as_f64())
    }
}

/// `time` as a fraction of `whole`, 0 if there is no whole.
pub(crate) fn fraction(time: Ns, whole: f64) -> f64 {
    if whole > 0.0 { time.as_f64() / whole } else { 0.0 }
}

pub(crate) fn default_path() -> PathBuf {
    let output = std::env::var_os("CHASE_OUTPUT").filter(|output| !output.is_empty());
    output.map_or_else(|| Path::new(DEFAULT_PATH).to_owned(), PathBuf::from)
}

/// Those of the runs at `paths` that are wanted, as one.
fn load(paths: &[PathBuf], wanted: Runs, progress: &mut Progress) -> anyhow::Result<Loaded> {
    let scanned = companion::scan(paths);
    let Catalog { mut runs, mut failures } = scanned.map_err(|error| match mistyped(paths) {
        Some(view) => anyhow::Error::new(Usage(format!("{error}; did you mean `{view}`?"))),
        None => error.into(),
    })?;
    let found = runs.len();
    if let Runs::Nth(number) = wanted {
        let Some(at) = number.checked_sub(1).filter(|&at| at < found) else {
            let path = paths[0].display();
            bail!("--run {number}: {path} has runs 1 (the newest) to {found}");
        };
        runs = vec![runs.swap_remove(at)];
    }
    let other_runs = match wanted {
        Runs::Nth(number) => found - number,
        Runs::All => 0,
    };
    let run = Run::together(runs).context("there are no runs")?;
    let mut loaded = load_run_with(&run, &mut |part| progress.show("reading", part * READING))?;
    failures.append(&mut loaded.failures);
    Ok(Loaded { failures, other_runs, ..loaded })
}

/// The view whose name looks like the one path that was given, and is not there.
fn mistyped(paths: &[PathBuf]) -> Option<String> {
    let [path] = paths else { return None };
    let typed = path.to_str().filter(|_| !path.exists())?;
    let command = Cli::command();
    let shown = command.get_subcommands().filter(|view| !view.is_hide_set());
    nearest(typed, shown.map(clap::Command::get_name)).map(str::to_owned)
}

/// The run that a program began; where it was not recorded itself, those of what it started.
fn load_launched(
    paths: &[PathBuf],
    launched: Launched,
    progress: &mut Progress,
) -> anyhow::Result<Loaded> {
    let Catalog { runs, mut failures } = companion::scan_since(paths, Ns(launched.since_ns))?;
    let is_of = |run: &&Run| run.members.iter().any(|member| member.header.pid == launched.pid);
    let run = runs.iter().find(is_of).filter(|run| is_since(run, launched)).cloned();
    let of_session =
        |run: &Run| run.root().header.session == launched.session && is_since(run, launched);
    let run = run.or_else(|| Run::together(runs.into_iter().filter(of_session).collect()));
    let run = run.with_context(|| {
        format!("neither process {} nor what it started left a recording", launched.pid)
    })?;
    let mut loaded = load_run_with(&run, &mut |part| progress.show("reading", part * READING))?;
    failures.append(&mut loaded.failures);
    Ok(Loaded { failures, other_runs: 0, ..loaded })
}

/// A process number may have been another's before.
fn is_since(run: &Run, launched: Launched) -> bool {
    run.start_realtime().0 >= launched.since_ns
}

/// The images of one process: an exec gives it a further one.
pub(crate) fn of_process(images: Vec<Image>, pid: u32) -> anyhow::Result<Vec<Image>> {
    let pid_of = |image: &Image| image.recording.header().pid;
    let mut new_places = vec![None; images.len()];
    let known: Vec<String> =
        images.iter().map(|image| format!("{} {}", pid_of(image), image.program())).collect();
    let mut kept: Vec<Image> = Vec::new();
    for (place, mut image) in images.into_iter().enumerate() {
        if pid_of(&image) == pid {
            image.parent = image.parent.and_then(|parent| new_places[parent]);
            new_places[place] = Some(kept.len());
            kept.push(image);
        }
    }
    if kept.is_empty() {
        bail!("no process {pid} in this run; it has: {}", known.join(", "));
    }
    Ok(kept)
}
