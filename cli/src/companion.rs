//! The companion of a run that has just ended is still at work for a moment: what it has not
//! written yet would be missing.

use std::collections::BTreeSet;
use std::fs::{File, TryLockError};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use chase_analyzer::recorder::layout::{END_NONE, Header};
use chase_analyzer::recorder::session::{FILE_NAME, idle_since};
use chase_analyzer::{Catalog, Error, Ns, Run};

/// It looks every tenth of a second, and twice in the end.
const PATIENCE: Duration = Duration::from_secs(2);

/// The runs at `paths`; those that have just ended, when their companion has finished.
///
/// # Errors
///
/// As [`chase_analyzer::scan_all`].
pub(crate) fn scan(paths: &[PathBuf]) -> Result<Catalog, Error> {
    scan_since(paths, Ns(0))
}

/// The same of those that began at this time, in ns since 1970, or later.
///
/// # Errors
///
/// As [`chase_analyzer::scan_since`].
pub(crate) fn scan_since(paths: &[PathBuf], since: Ns) -> Result<Catalog, Error> {
    let catalog = chase_analyzer::scan_since(paths, since)?;
    let directory = |path: &PathBuf| match path.is_dir() {
        true => Some(path.clone()),
        false => path.parent().map(Path::to_path_buf),
    };
    let directories: BTreeSet<PathBuf> = paths.iter().filter_map(directory).collect();
    let waits = directories.iter().filter(|directory| await_end(directory, &catalog.runs));
    if waits.count() > 0 { chase_analyzer::scan_since(paths, since) } else { Ok(catalog) }
}

/// Waits until the companion in `directory` has finished, if no process of the runs lives. Says
/// whether there was anything to wait for.
fn await_end(directory: &Path, runs: &[Run]) -> bool {
    let Ok(session) = File::open(directory.join(FILE_NAME)) else { return false };
    let mut members = runs.iter().flat_map(|run| &run.members);
    if !is_locked(&session) || members.any(|member| is_alive(&member.header)) {
        return false;
    }
    let (start, start_ns) = (Instant::now(), monotonic_ns());
    while is_locked(&session) && start.elapsed() < PATIENCE {
        // It stays for the next run, but has nothing left to do since a look that began after this one.
        if idle_at(&session).is_some_and(|idle_ns| idle_ns >= start_ns) {
            return true;
        }
        sleep(Duration::from_millis(10));
    }
    // Its last look.
    sleep(Duration::from_millis(50));
    true
}

fn idle_at(session: &File) -> Option<u64> {
    let mut text = [0; 256];
    let len = session.read_at(&mut text, 0).ok()?;
    idle_since(&text[..len])
}

/// The clock of the session's file.
fn monotonic_ns() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel fills in the structure.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now) };
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
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

/// Whether the process still runs: no end was seen, and it is there. (One of another namespace of process numbers is not
/// found; then this waits until the companion has looked once more.)
fn is_alive(header: &Header) -> bool {
    header.end_kind == END_NONE && chase_analyzer::is_running(header)
}
