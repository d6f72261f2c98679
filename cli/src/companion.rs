//! The companion of a run that has just ended is still at work for a moment: what it has not
//! written yet would be missing.

use std::collections::BTreeSet;
use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use chase_analyzer::recorder::layout::{END_NONE, Header};
use chase_analyzer::{Catalog, Error, Run};

/// Locked as long as a companion listens; in the directory of the recordings.
const SESSION: &str = "companion.session";
/// It looks every tenth of a second, and twice in the end.
const PATIENCE: Duration = Duration::from_secs(2);

/// The runs at `paths`; those that have just ended, when their companion has finished.
///
/// # Errors
///
/// As [`chase_analyzer::scan_all`].
pub(crate) fn scan(paths: &[PathBuf]) -> Result<Catalog, Error> {
    let catalog = chase_analyzer::scan_all(paths)?;
    let directory = |path: &PathBuf| match path.is_dir() {
        true => Some(path.clone()),
        false => path.parent().map(Path::to_path_buf),
    };
    let directories: BTreeSet<PathBuf> = paths.iter().filter_map(directory).collect();
    let waits = directories.iter().filter(|directory| await_end(directory, &catalog.runs));
    if waits.count() > 0 { chase_analyzer::scan_all(paths) } else { Ok(catalog) }
}

/// Waits until the companion in `directory` has finished, if no process of the runs lives. Says
/// whether there was anything to wait for.
fn await_end(directory: &Path, runs: &[Run]) -> bool {
    let Ok(session) = File::open(directory.join(SESSION)) else { return false };
    let mut members = runs.iter().flat_map(|run| &run.members);
    if !is_locked(&session) || members.any(|member| is_alive(&member.header)) {
        return false;
    }
    let start = Instant::now();
    while is_locked(&session) && start.elapsed() < PATIENCE {
        sleep(Duration::from_millis(20));
    }
    // Its last look.
    sleep(Duration::from_millis(50));
    true
}

fn is_locked(session: &File) -> bool {
    match session.try_lock_shared() {
        Ok(()) => {
            // The lock ends with the file in any case.
            let _ = session.unlock();
            false
        }
        Err(TryLockError::WouldBlock) => true,
        Err(TryLockError::Error(_)) => false,
    }
}

/// Whether the process may still run: no end was seen, and its number is in use.
fn is_alive(header: &Header) -> bool {
    header.end_kind == END_NONE && Path::new("/proc").join(header.pid.to_string()).exists()
}
