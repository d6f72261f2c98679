//! Names of generated code: just-in-time compilers list them in `/tmp/perf-PID.map`, which is copied beside the
//! recording.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::maps;
use crate::shared::Process;

/// The maximum number of bytes that are copied of a list.
const LONGEST: u64 = 1 << 28;
/// The extension of the copy, appended to the name of the recording.
pub const EXTENSION: &str = "perf-map";

/// The list of a process that has run generated code.
#[derive(Debug, Default)]
pub struct Names {
    list: Option<File>,
}

impl Names {
    /// Opens the list while the process lives, since it may have a `/tmp` of its own. `now_ns` is the time by
    /// `CLOCK_MONOTONIC`.
    pub fn open_list(&mut self, process: &Process, now_ns: u64) {
        if self.list.is_none() {
            let root = maps::number_of(process).map(|pid| format!("/proc/{pid}/root"));
            self.list = root.and_then(|root| open(Path::new(&root), process, now_ns)).ok();
        }
    }

    /// After the process has ended, copies its list beside its recording, if both have the same owner: the list may
    /// be a link to any file.
    ///
    /// # Errors
    /// If the copy can't be written.
    pub fn keep(mut self, process: &Process, recording: &Path, now_ns: u64) -> io::Result<()> {
        let Ok(owner) = fs::metadata(recording).map(|recording| recording.uid()) else {
            return Ok(());
        };
        // A process that lived only briefly may have been missed.
        let Some(list) = self.list.take().or_else(|| open(Path::new("/"), process, now_ns).ok())
        else {
            return Ok(());
        };
        if list.metadata()?.uid() != owner {
            return Ok(());
        }
        let mut options = OpenOptions::new();
        let create = options.write(true).create_new(true).mode(0o600);
        let mut copy = match create.open(with_extension(recording)) {
            // It may belong to anybody.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(()),
            copy => copy?,
        };
        io::copy(&mut list.take(LONGEST), &mut copy)?;
        Ok(())
    }
}

fn with_extension(recording: &Path) -> PathBuf {
    let mut path = recording.as_os_str().to_owned();
    path.push(".");
    path.push(EXTENSION);
    path.into()
}

/// Opens the list of a process under `root`. Fails unless it is a regular file, written while the process lived.
fn open(root: &Path, process: &Process, now_ns: u64) -> io::Result<File> {
    let path = root.join(format!("tmp/perf-{}.map", process.own_pid));
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
    let list = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    let metadata = list.metadata()?;
    let age = metadata.modified()?.elapsed().unwrap_or_default();
    let lives_ns = now_ns.saturating_sub(process.began_ns);
    if !metadata.is_file() || age.as_nanos() > u128::from(lives_ns) {
        return Err(io::ErrorKind::NotFound.into());
    }
    Ok(list)
}
