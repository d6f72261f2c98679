//! Real runs of very many processes under `chase record`: the tests of git, and `./configure && make`.
//!
//! Each is run bare and recorded, in turns. A script that fails bare is left out, and said; one that fails only when it is
//! recorded is a failure.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use crate::analysis::summary_of;
use crate::bench::{Bench, Under};
use crate::companion::Watched;
use crate::report::{Figure, Report};

const PART: &str = "many";
/// Times the bare run; kB of recordings for each process; seconds and MB (10⁶ bytes) of a report of all.
const BAR: f64 = 1.3;
const SPACE_BAR: f64 = 5.0;
const TIME_BAR: f64 = 10.0;
const MEMORY_BAR: f64 = 500.0;
/// No script takes longer.
const PATIENCE: Duration = Duration::from_secs(1200);
/// How often a package is configured and built.
const BUILDS: u32 = 2;

/// What is there to be run.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct Sources {
    /// git's source, built, whose t0* and t1* tests are run (`cargo xtask many`)
    #[arg(long, value_name = "DIR")]
    git: Option<PathBuf>,
    /// A source with ./configure, which is built
    #[arg(long, value_name = "DIR")]
    package: Option<PathBuf>,
    /// Of git's tests, every so many
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    every: u32,
}

pub(crate) fn measure(bench: &Bench, sources: &Sources, report: &mut Report) -> Result<()> {
    let directory = bench.directory(PART)?;
    if let Some(git) = &sources.git {
        let scripts = scripts(&git.join("t"), sources.every as usize)?;
        let recorded = Recorded { bench, output: directory.join("git.data") };
        let scratch = directory.join("git");
        fs::create_dir_all(&scratch)?;
        let root = format!("--root={}", scratch.display());
        let all = scripts.iter().map(|script| Work {
            name: script.clone(),
            directory: git.join("t"),
            command: ["sh", script, &root].map(str::to_owned).to_vec(),
        });
        let what = format!("git's tests, {} scripts", scripts.len());
        recorded.measure(report, &what, all)?;
    }
    if let Some(package) = &sources.package {
        let package = package.canonicalize()?;
        let name = package.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let recorded = Recorded { bench, output: directory.join("package.data") };
        let build = directory.join("build");
        // Each time anew.
        let script = format!(
            "rm -rf {build}; mkdir {build}; cd {build}; {package}/configure && make",
            build = build.display(),
            package = package.display()
        );
        let all = (0..bench.count(BUILDS, 1)).map(|_| Work {
            name: name.clone(),
            directory: directory.clone(),
            command: ["sh", "-c", &script].map(str::to_owned).to_vec(),
        });
        recorded.measure(report, &format!("{name}: ./configure && make"), all)?;
    }
    if sources.git.is_none() && sources.package.is_none() {
        report.skipped(PART, "all", "`cargo xtask many` has what is run");
    }
    Ok(())
}

/// One of the commands that are run.
struct Work {
    name: String,
    directory: PathBuf,
    command: Vec<String>,
}

/// Runs whose recordings are all in one directory.
struct Recorded<'a> {
    bench: &'a Bench,
    output: PathBuf,
}

impl Recorded<'_> {
    fn measure(
        &self,
        report: &mut Report,
        what: &str,
        all: impl Iterator<Item = Work>,
    ) -> Result<()> {
        let (mut bare, mut chase) = (Vec::new(), Vec::new());
        for (at, work) in all.enumerate() {
            // Every other one the other way round.
            let before = (at % 2 == 1).then(|| self.chase(&work));
            let alone = match self.run(&work, work.command.clone()) {
                Ok(seconds) => seconds,
                Err(why) => {
                    report.skipped(PART, &work.name, &format!("bare: {why:#}"));
                    continue;
                }
            };
            match before.unwrap_or_else(|| self.chase(&work)) {
                Ok(seconds) => {
                    bare.push(alone);
                    chase.push(seconds);
                }
                Err(why) => report.failed(PART, &work.name, None, &format!("{why:#}")),
            }
        }
        ensure!(!bare.is_empty(), "{what}: nothing could be run");
        let processes = self.processes()? as f64;
        let bytes = space(&self.output)? as f64;
        let ratios = crate::turns::paired(&chase, &bare, |chase, bare| chase / bare);
        let figure = |what: String, unit, bar, value, details| Figure {
            part: PART,
            what,
            unit,
            bar: Some(bar),
            values: vec![value],
            details,
        };
        let (all_bare, all_chase) = (bare.iter().sum::<f64>(), chase.iter().sum::<f64>());
        let details = vec![
            ("bare", "s", vec![all_bare]),
            ("recorded", "s", vec![all_chase]),
            ("each, median", "×", ratios),
            ("processes", "", vec![processes]),
        ];
        report.measured(figure(what.to_owned(), "×", BAR, all_chase / all_bare, details));
        let details = vec![("recordings", "MB", vec![bytes / 1e6])];
        let each = format!("{what}: recordings, of each process");
        report.measured(figure(each, "kB", SPACE_BAR, bytes / processes / 1e3, details));
        let cost = summary_of(self.reporter(&[]))?;
        let time = format!("{what}: a report of them");
        report.measured(figure(time.clone(), "s", TIME_BAR, cost.seconds, Vec::new()));
        let memory = format!("{time}: memory");
        report.measured(figure(memory, "MB", MEMORY_BAR, cost.bytes / 1e6, Vec::new()));
        Ok(())
    }

    /// Seconds of wall time, with the summary at the end.
    fn chase(&self, work: &Work) -> Result<f64> {
        let chase = self.bench.lib.with_file_name("chase").display().to_string();
        let output = self.output.display().to_string();
        let mut words = vec![chase, "record".to_owned(), "-o".to_owned(), output, "--".to_owned()];
        words.extend_from_slice(&work.command);
        let seconds = self.run(work, words);
        // It would stay for the next run, which may be a bare one.
        if let Ok(watched) = Watched::in_directory(&self.output) {
            watched.end()?;
        }
        seconds
    }

    fn run(&self, work: &Work, command: Vec<String>) -> Result<f64> {
        let running = self.bench.start(&work.directory, Under::Nothing, &command)?;
        Ok(running.finish(PATIENCE)?.wall.as_secs_f64())
    }

    fn reporter(&self, words: &[&str]) -> Command {
        let mut command = Command::new(self.bench.lib.with_file_name("chase-report"));
        command.args(words).args(["--run", "all"]).arg(&self.output);
        command
    }

    /// How many there are recordings of.
    fn processes(&self) -> Result<usize> {
        const KEY: &[u8] = b"\"parent_pid\":";
        let output = self.reporter(&["libs", "--json"]).stdin(Stdio::null()).output()?;
        ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr).trim());
        // (In a text, the key's quotes would have backslashes before them.)
        Ok(output.stdout.windows(KEY.len()).filter(|window| *window == KEY).count())
    }
}

/// What the files in a directory take on disk, in bytes.
fn space(directory: &Path) -> Result<u64> {
    const BLOCK: u64 = 512;
    let files = fs::read_dir(directory).with_context(|| directory.display().to_string())?;
    files.map(|entry| Ok(entry?.metadata()?.blocks() * BLOCK)).sum()
}

/// The scripts whose names begin with t0 or t1, or every so many of them.
fn scripts(directory: &Path, every: usize) -> Result<Vec<String>> {
    let files = fs::read_dir(directory).with_context(|| directory.display().to_string())?;
    let names = files.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
    let is_wanted =
        |name: &String| (name.starts_with("t0") || name.starts_with("t1")) && name.ends_with(".sh");
    let mut names: Vec<String> = names.filter(is_wanted).collect();
    names.sort();
    Ok(names.into_iter().step_by(every).collect())
}
