//! Companions: that of a run, which has nothing left to do long before it ends by itself, and one that waits for processes.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use chase_companion::clock::now_ns;
use chase_recorder::session::{FILE_NAME, SESSION, idle_since};
use rustix::process::{Pid, Signal, kill_process};

/// It gets ready, and writes what it knows, within this.
const PATIENCE: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(5);
/// It takes no longer from the last word to its end.
const LAST_WORDS: Duration = Duration::from_millis(60);

/// The companion that has watched a run.
pub(crate) struct Watched {
    file: File,
    path: PathBuf,
}

impl Watched {
    /// That of the run recorded in `output`.
    pub(crate) fn in_directory(output: &Path) -> Result<Self> {
        let path = output.join(FILE_NAME);
        let file = File::open(&path).context("no companion has been at work")?;
        Ok(Self { file, path })
    }

    /// Waits until all is written of a run that has ended.
    pub(crate) fn await_rows(&self) -> Result<()> {
        let (ended_ns, start) = (now_ns(libc::CLOCK_MONOTONIC), Instant::now());
        // It says when it began to look, and has found no process any more.
        while idle_since(&std::fs::read(&self.path)?).is_none_or(|since| since < ended_ns) {
            if self.file.try_lock_shared().is_ok() {
                break;
            }
            if start.elapsed() > PATIENCE {
                bail!("the companion does not finish");
            }
            std::thread::sleep(PAUSE);
        }
        Ok(())
    }

    /// Has it end, and waits for that: it would add to the next run.
    pub(crate) fn end(self) -> Result<()> {
        // Where nobody can find it, it stays no longer.
        std::fs::remove_file(&self.path)?;
        self.file.lock()?;
        std::thread::sleep(LAST_WORDS);
        Ok(())
    }
}

/// A companion that waits for processes whose recordings are in its directory.
pub(crate) struct Listening(Child);

impl Listening {
    /// Starts it, and waits until it listens.
    pub(crate) fn start(companion: &Path, directory: &Path) -> Result<Self> {
        let session = directory.join(FILE_NAME);
        // That of an earlier turn.
        let _ = std::fs::remove_file(&session);
        let mut command = Command::new(companion);
        command.arg("--output").arg(directory).args(["--patience", "60", "--linger", "60"]);
        let child = command.stderr(Stdio::null()).spawn();
        let mut this = Self(child.with_context(|| format!("starting {}", companion.display()))?);
        let start = Instant::now();
        while std::fs::read_to_string(&session).map_or(true, |text| !text.contains(SESSION)) {
            if start.elapsed() > PATIENCE || this.0.try_wait()?.is_some() {
                bail!("the companion does not get ready");
            }
            std::thread::sleep(PAUSE);
        }
        Ok(this)
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        // It writes what it knows, or has ended by itself.
        if let Some(pid) = i32::try_from(self.0.id()).ok().and_then(Pid::from_raw) {
            let _ = kill_process(pid, Signal::TERM);
        }
        let _ = self.0.wait();
    }
}
