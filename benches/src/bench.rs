//! Running programs, bare and hooked.

use std::ffi::OsStr;
use std::fmt;
use std::fs::{File, Permissions};
use std::io::{Read, Seek};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use chase_companion::empty::EmptyPair;
use rustix::process::{Pid, Signal, kill_process_group};
use wait_timeout::ChildExt;

use crate::companion::Watched;
use crate::turns::{Deadline, Limit};

/// No run takes longer, or it is killed and counted as failed.
const RUN_LIMIT: Duration = Duration::from_secs(60);

/// What `CHASE_...` is as if it were not set, unless a measurement sets it.
const OTHERS: [&str; 12] = [
    "ARGUMENTS",
    "EVENTS",
    "EXCLUDE",
    "FOLLOW",
    "INTERNAL",
    "LIBS",
    "MAX_SIZE",
    "NARRATE",
    "SAMPLE",
    "SITES",
    "THREADS",
    "VERBOSE",
];

/// Under what a program runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Under {
    Nothing,
    /// `CHASE_TIMING=adaptive`: hot, short, even calls are sampled.
    Chase,
    /// The same, with the companion.
    ChaseWithSyscalls,
    /// With every call timed.
    ChaseAll,
    /// The same, with the companion.
    ChaseAllWithSyscalls,
    /// With calls counted and not timed.
    ChaseCount,
}

/// The hook, and a place for programs and recordings.
pub(crate) struct Bench {
    pub(crate) lib: PathBuf,
    /// Whether others are measured too, to be compared with.
    pub(crate) peers: bool,
    /// The hook of another build, to be compared with.
    pub(crate) before: Option<PathBuf>,
    effort: f64,
    scratch: tempfile::TempDir,
    /// Runs so far.
    runs: AtomicU32,
}

/// What a run gave.
pub(crate) struct Run {
    pub(crate) wall: Duration,
    /// What it wrote to its standard output.
    pub(crate) stdout: Vec<u8>,
}

/// A program that has been started, and is killed when this is dropped before its end.
pub(crate) struct Running {
    child: Child,
    name: String,
    under: Under,
    start: Instant,
    stdout: File,
    stderr: File,
    /// Where a recording is made.
    output: PathBuf,
}

/// A run was stopped after so long.
#[derive(Debug)]
pub(crate) struct TooLong(pub(crate) Duration);

impl Bench {
    pub(crate) fn new(lib: PathBuf, effort: f64) -> Result<Self> {
        let scratch = tempfile::Builder::new()
            .prefix("chase-bench-")
            .tempdir()
            .context("making a directory for programs and recordings")?;
        Ok(Self { lib, peers: false, before: None, effort, scratch, runs: AtomicU32::new(0) })
    }

    /// A directory of our own for `part`.
    pub(crate) fn directory(&self, part: &str) -> Result<PathBuf> {
        let path = self.scratch.path().join(part);
        std::fs::create_dir_all(&path).with_context(|| format!("making {}", path.display()))?;
        Ok(path)
    }

    /// The same, which everybody may look into, and into all that is beside it.
    pub(crate) fn open_directory(&self, part: &str) -> Result<PathBuf> {
        let path = self.directory(part)?;
        for directory in [self.scratch.path(), &path] {
            std::fs::set_permissions(directory, Permissions::from_mode(0o755))
                .with_context(|| format!("opening {}", directory.display()))?;
        }
        Ok(path)
    }

    /// A path at which nothing is yet, for what a run writes.
    pub(crate) fn fresh(&self) -> PathBuf {
        let run = self.runs.fetch_add(1, Ordering::Relaxed);
        self.scratch.path().join(format!("output-{run}"))
    }

    /// `limit`, as far as the user wants to go.
    pub(crate) fn limit(&self, limit: Limit) -> Limit {
        limit.scaled(self.effort)
    }

    /// The end of a part that begins now: of 18 minutes, as far as the user wants to go. (The row that is being measured then
    /// is finished.)
    pub(crate) fn deadline(&self) -> Deadline {
        const PART: Duration = Duration::from_secs(18 * 60);
        Deadline::after(PART.mul_f64(self.effort))
    }

    /// `count`, as far as the user wants to go, but no fewer than `least`.
    pub(crate) fn count(&self, count: u32, least: u32) -> u32 {
        ((f64::from(count) * self.effort).round() as u32).max(least)
    }

    /// Runs `command` to its end. Its standard output is kept; it must exit with 0, and under
    /// chase it must leave a recording.
    pub(crate) fn run(&self, under: Under, command: &[impl AsRef<OsStr>]) -> Result<Run> {
        self.run_in(self.scratch.path(), under, command)
    }

    /// The same with `directory` as working directory.
    pub(crate) fn run_in(
        &self,
        directory: &Path,
        under: Under,
        command: &[impl AsRef<OsStr>],
    ) -> Result<Run> {
        self.run_with(directory, under, &[], command)
    }

    /// The same with more variables for chase.
    pub(crate) fn run_with(
        &self,
        directory: &Path,
        under: Under,
        variables: &[(&str, &str)],
        command: &[impl AsRef<OsStr>],
    ) -> Result<Run> {
        self.start_with(directory, under, variables, command)?.finish(RUN_LIMIT)
    }

    /// The same; `look` is shown the directory of the recordings before that is removed.
    pub(crate) fn run_and_look<T>(
        &self,
        directory: &Path,
        under: Under,
        command: &[impl AsRef<OsStr>],
        look: impl FnOnce(&Path) -> Result<T>,
    ) -> Result<(Run, T)> {
        self.start(directory, under, command)?.finish_and_look(RUN_LIMIT, look)
    }

    /// The same as [`Self::run_in`], but returns at once.
    pub(crate) fn start(
        &self,
        directory: &Path,
        under: Under,
        command: &[impl AsRef<OsStr>],
    ) -> Result<Running> {
        self.start_with(directory, under, &[], command)
    }

    fn start_with(
        &self,
        directory: &Path,
        under: Under,
        variables: &[(&str, &str)],
        command: &[impl AsRef<OsStr>],
    ) -> Result<Running> {
        let output = self.fresh();
        let (program, arguments) = command.split_first().context("no command")?;
        let file = Path::new(program).file_name().unwrap_or(program.as_ref());
        let mut name = file.to_string_lossy().into_owned();
        let mut command = Command::new(program);
        command.args(arguments).env("LC_ALL", "C").env_remove("LD_PRELOAD");
        for other in OTHERS {
            command.env_remove(format!("CHASE_{other}"));
        }
        if let Some(timing) = under.timing() {
            let syscalls = if under.has_companion() { "require" } else { "off" };
            command.env("LD_PRELOAD", &self.lib).env("CHASE_OUTPUT", &output);
            command.env("CHASE_SYSCALLS", syscalls).env("CHASE_TIMING", timing);
            command.envs(variables.iter().copied());
            name += " under chase";
        }
        let stdout = tempfile::tempfile()?;
        let stderr = tempfile::tempfile()?;
        command
            .stdin(Stdio::null())
            .stdout(stdout.try_clone()?)
            .stderr(stderr.try_clone()?)
            .current_dir(directory)
            // So that what it starts can be killed with it.
            .process_group(0);
        let start = Instant::now();
        let child = command.spawn().with_context(|| format!("starting {name}"))?;
        Ok(Running { child, name, under, start, stdout, stderr, output })
    }
}

impl Running {
    /// Waits for its end; kills it with all that it started when that takes longer than `limit`
    /// from now on, and then returns [`TooLong`].
    pub(crate) fn finish(self, limit: Duration) -> Result<Run> {
        Ok(self.finish_and_look(limit, |_| Ok(()))?.0)
    }

    /// The same; `look` is shown the directory of the recordings before that is removed.
    fn finish_and_look<T>(
        mut self,
        limit: Duration,
        look: impl FnOnce(&Path) -> Result<T>,
    ) -> Result<(Run, T)> {
        let status = self.child.wait_timeout(limit)?;
        let wall = self.start.elapsed();
        let Some(status) = status else {
            // It is killed as this is dropped.
            return Err(anyhow::Error::new(TooLong(limit)).context(self.name.clone()));
        };
        if !status.success() {
            let how = match status.signal() {
                Some(signal) => format!("was killed by signal {signal}"),
                None => format!("exited with {}", status.code().unwrap_or(-1)),
            };
            bail!("{} {how}{}", self.name, last_line(&mut self.stderr)?);
        }
        if self.under != Under::Nothing {
            self.check_recording()?;
        }
        let watched = if self.under.has_companion() {
            Some(Watched::in_directory(&self.output)?)
        } else {
            None
        };
        // What the companion still has to do is not to be done during the next run.
        watched.as_ref().map_or(Ok(()), Watched::await_rows)?;
        let looked = look(&self.output);
        watched.map_or(Ok(()), Watched::end)?;
        // If a companion is still writing, the rest is removed with all else in the end.
        let _ = std::fs::remove_dir_all(&self.output);
        let looked = looked?;
        let mut stdout = Vec::new();
        self.stdout.rewind()?;
        self.stdout.read_to_end(&mut stdout)?;
        Ok((Run { wall, stdout }, looked))
    }

    /// Makes sure that there is one.
    fn check_recording(&mut self) -> Result<()> {
        let is_recording = |entry: std::io::Result<std::fs::DirEntry>| {
            entry.is_ok_and(|entry| entry.path().extension().is_some_and(|e| e == "chase"))
        };
        if !std::fs::read_dir(&self.output).is_ok_and(|mut files| files.any(is_recording)) {
            bail!("{} left no recording{}", self.name, last_line(&mut self.stderr)?);
        }
        Ok(())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(Some(_))) {
            return;
        }
        if let Some(group) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw) {
            // It may have ended just now.
            let _ = kill_process_group(group, Signal::KILL);
        }
        let _ = self.child.wait();
    }
}

impl Under {
    fn has_companion(self) -> bool {
        matches!(self, Self::ChaseWithSyscalls | Self::ChaseAllWithSyscalls)
    }

    /// The value of `CHASE_TIMING`; `None` without chase.
    fn timing(self) -> Option<&'static str> {
        match self {
            Self::Nothing => None,
            Self::Chase | Self::ChaseWithSyscalls => Some("adaptive"),
            Self::ChaseAll | Self::ChaseAllWithSyscalls => Some("all"),
            Self::ChaseCount => Some("count"),
        }
    }
}

impl Run {
    /// The `at`th number that the program printed.
    pub(crate) fn number(&self, at: usize) -> Result<f64> {
        let text = String::from_utf8_lossy(&self.stdout);
        let word = text.split_whitespace().nth(at);
        word.and_then(|w| w.parse().ok())
            .ok_or_else(|| anyhow!("expected number {at} in the output {text:?}"))
    }
}

impl fmt::Display for TooLong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "stopped after {} s", self.0.as_secs())
    }
}

impl std::error::Error for TooLong {}

/// Where `program` is in `PATH`.
pub(crate) fn installed(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|p| p.join(program)).find(|p| p.is_file())
}

/// Why system calls can't be watched by anybody here.
pub(crate) fn unwatchable() -> Option<String> {
    EmptyPair::attach().err().map(|why| format!("system calls can't be watched here: {why}"))
}

fn last_line(stderr: &mut File) -> Result<String> {
    stderr.rewind()?;
    let mut bytes = Vec::new();
    stderr.read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes);
    let line = text.lines().rfind(|line| !line.trim().is_empty());
    Ok(line.map_or_else(String::new, |line| format!(": {}", line.trim())))
}
