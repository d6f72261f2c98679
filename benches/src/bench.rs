//! Running programs, bare and hooked.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{Read, Seek};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use rustix::process::{Pid, Signal, kill_process_group};
use wait_timeout::ChildExt;

use crate::turns::Limit;

/// No run takes longer, or it is killed and counted as failed.
const RUN_LIMIT: Duration = Duration::from_secs(10);

/// Under what a program runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Under {
    Nothing,
    /// As it comes: hot, short, even calls are sampled.
    Chase,
    /// With the companion.
    ChaseWithSyscalls,
    /// With every call timed.
    ChaseAll,
    /// With calls counted and not timed.
    ChaseCount,
    Uftrace,
    Ltrace,
}

/// The hook, and a place for programs and recordings.
pub(crate) struct Bench {
    pub(crate) lib: PathBuf,
    effort: f64,
    scratch: tempfile::TempDir,
}

/// What a run gave.
pub(crate) struct Run {
    pub(crate) wall: Duration,
    pub(crate) stdout: String,
}

impl Bench {
    pub(crate) fn new(lib: PathBuf, effort: f64) -> Result<Self> {
        let scratch = tempfile::Builder::new()
            .prefix("chase-bench-")
            .tempdir()
            .context("making a directory for programs and recordings")?;
        Ok(Self { lib, effort, scratch })
    }

    /// A directory of our own for `part`.
    pub(crate) fn directory(&self, part: &str) -> Result<PathBuf> {
        let path = self.scratch.path().join(part);
        std::fs::create_dir_all(&path).with_context(|| format!("making {}", path.display()))?;
        Ok(path)
    }

    /// `limit`, as far as the user wants to go.
    pub(crate) fn limit(&self, limit: Limit) -> Limit {
        limit.scaled(self.effort)
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
        let output = self.scratch.path().join("recording");
        let (mut wrapped, name) = self.command(under, command, &output)?;
        let mut stdout = tempfile::tempfile()?;
        let mut stderr = tempfile::tempfile()?;
        wrapped
            .stdin(Stdio::null())
            .stdout(stdout.try_clone()?)
            .stderr(stderr.try_clone()?)
            .current_dir(directory)
            // So that what it starts can be killed with it.
            .process_group(0);

        let start = Instant::now();
        let mut child = wrapped.spawn().with_context(|| format!("starting {name}"))?;
        let status = child.wait_timeout(RUN_LIMIT)?;
        let wall = start.elapsed();

        let Some(status) = status else {
            let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
            if let Some(group) = group {
                // It may have ended just now.
                let _ = kill_process_group(group, Signal::KILL);
            }
            child.wait()?;
            bail!("{name} took more than {} s", RUN_LIMIT.as_secs());
        };
        if !status.success() {
            let how = match status.signal() {
                Some(signal) => format!("was killed by signal {signal}"),
                None => format!("exited with {}", status.code().unwrap_or(-1)),
            };
            bail!("{name} {how}{}", last_line(&mut stderr)?);
        }
        let recorded = std::fs::read_dir(&output).is_ok_and(|mut files| files.next().is_some());
        if under.is_chase() && !recorded {
            bail!("{name} left no recording{}", last_line(&mut stderr)?);
        }
        if output.exists() {
            std::fs::remove_dir_all(&output)
                .with_context(|| format!("removing the recording {}", output.display()))?;
        }
        stdout.rewind()?;
        let mut text = String::new();
        // What real programs print may be anything, and nobody reads it.
        let _ = stdout.read_to_string(&mut text);
        Ok(Run { wall, stdout: text })
    }

    fn command(
        &self,
        under: Under,
        command: &[impl AsRef<OsStr>],
        output: &Path,
    ) -> Result<(Command, String)> {
        let (program, arguments) = command.split_first().context("no command")?;
        let file = Path::new(program).file_name().unwrap_or(program.as_ref());
        let mut name = file.to_string_lossy().into_owned();
        let mut wrapped = match under {
            Under::Nothing
            | Under::Chase
            | Under::ChaseWithSyscalls
            | Under::ChaseAll
            | Under::ChaseCount => Command::new(program),
            Under::Uftrace => {
                let mut uftrace = Command::new("uftrace");
                uftrace.args(["record", "--force", "-l", "-d"]).arg(output).arg(program);
                uftrace
            }
            Under::Ltrace => {
                let mut ltrace = Command::new("ltrace");
                ltrace.args(["-f", "-o", "/dev/null"]).arg(program);
                ltrace
            }
        };
        wrapped.args(arguments).env_remove("LD_PRELOAD").env("LC_ALL", "C");
        match under {
            Under::Nothing => {}
            Under::Chase | Under::ChaseWithSyscalls | Under::ChaseAll | Under::ChaseCount => {
                let timing = match under {
                    Under::ChaseAll => "all",
                    Under::ChaseCount => "count",
                    _ => "adaptive",
                };
                let syscalls = if under == Under::ChaseWithSyscalls { "require" } else { "off" };
                wrapped.env("LD_PRELOAD", &self.lib).env("CHASE_OUTPUT", output);
                wrapped.env("CHASE_SYSCALLS", syscalls).env("CHASE_TIMING", timing);
                name += " under chase";
            }
            Under::Uftrace => name += " under uftrace",
            Under::Ltrace => name += " under ltrace",
        }
        Ok((wrapped, name))
    }
}

impl Under {
    fn is_chase(self) -> bool {
        matches!(self, Self::Chase | Self::ChaseAll | Self::ChaseCount)
    }
}

impl Run {
    /// The `at`th number that the program printed.
    pub(crate) fn number(&self, at: usize) -> Result<f64> {
        let word = self.stdout.split_whitespace().nth(at);
        word.and_then(|w| w.parse().ok())
            .ok_or_else(|| anyhow!("expected number {at} in the output {:?}", self.stdout))
    }
}

/// Where `program` is in `PATH`.
pub(crate) fn installed(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|p| p.join(program)).find(|p| p.is_file())
}

fn last_line(stderr: &mut File) -> Result<String> {
    stderr.rewind()?;
    let mut bytes = Vec::new();
    stderr.read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes);
    let line = text.lines().rfind(|line| !line.trim().is_empty());
    Ok(line.map_or_else(String::new, |line| format!(": {}", line.trim())))
}
