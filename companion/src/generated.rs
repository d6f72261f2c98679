//! Names of generated code: compilers in processes list them in `/tmp/perf-PID.map`, which is copied beside the recording.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::maps;
use crate::shared::Process;

/// Of a longer list only so many bytes are copied.
const LONGEST: u64 = 1 << 28;
/// What the copy of a list is called, behind the name of the recording.
pub const EXTENSION: &str = "perf-map";

/// The list of a process that has run generated code.
#[derive(Debug, Default)]
pub struct Names {
    list: Option<File>,
}

impl Names {
    /// Opens the list, at the moment `now_ns` of `CLOCK_MONOTONIC`, while the process lives, since its `/tmp` may be no other's.
    pub fn open_list(&mut self, process: &Process, now_ns: u64) {
        if self.list.is_none() {
            let root = maps::number_of(process).map(|pid| format!("/proc/{pid}/root"));
            self.list = root.and_then(|root| open(Path::new(&root), process, now_ns)).ok();
        }
    }

    /// Copies the list of a process that has ended beside its recording, if it is by the same user: what it names may
    /// be a link to anything.
    ///
    /// # Errors
    /// When the copy can't be written.
    pub fn keep(mut self, process: &Process, recording: &Path, now_ns: u64) -> io::Result<()> {
        let Ok(owner) = fs::metadata(recording).map(|recording| recording.uid()) else {
            return Ok(());
        };
        // A short life may have been missed.
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
            // Whose it is nobody knows.
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

/// The list of a process under `root`; a regular file that was written in its time.
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
