//! Names of generated code: just-in-time compilers list them in `/tmp/perf-PID.map`, or write them to a file
//! `jit-PID.dump` that they map. The names of both are copied beside the recording, as one list.

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::jitdump;
use crate::maps;
use crate::shared::Process;

/// The maximum number of bytes that are read of a list or dump.
const LONGEST: u64 = 1 << 28;
/// The extension of the copy, appended to the name of the recording.
pub const EXTENSION: &str = "perf-map";

/// The files in which a process lists its generated code.
#[derive(Debug, Default)]
pub struct Names {
    list: Option<File>,
    dump: Option<File>,
}

impl Names {
    /// Opens the list and the dump while the process lives, since it may have a `/tmp` of its own. `now_ns` is the time
    /// by `CLOCK_MONOTONIC`, `mapped` are the paths of the files that the process has mapped.
    pub fn open_files<'m>(
        &mut self,
        process: &Process,
        now_ns: u64,
        mut mapped: impl Iterator<Item = &'m [u8]>,
    ) {
        if self.list.is_some() && self.dump.is_some() {
            return;
        }
        let Ok(root) = maps::number_of(process).map(|pid| format!("/proc/{pid}/root")) else {
            return;
        };
        let root = Path::new(&root);
        if self.list.is_none() {
            self.list = open(&list_of(root, process), process, now_ns).ok();
        }
        if self.dump.is_none() {
            let file_name =
                |path: &[u8]| path.rsplit(|&byte| byte == b'/').next().map(<[u8]>::to_vec);
            let is_dump = |path: &&[u8]| {
                file_name(path).is_some_and(|name| jitdump::is_name_of(process.own_pid, &name))
            };
            let path = mapped.find(is_dump).and_then(|path| path.strip_prefix(b"/"));
            let path = path.map(|path| root.join(OsStr::from_bytes(path)));
            self.dump = path.and_then(|path| open(&path, process, now_ns).ok());
        }
    }

    /// Copies the names of a process that has ended beside its recording. A list or dump of another owner than the
    /// recording's is ignored, since it may be a link to any file.
    ///
    /// # Errors
    /// If the copy can't be written.
    pub fn keep(mut self, process: &Process, recording: &Path, now_ns: u64) -> io::Result<()> {
        let Ok(owner) = fs::metadata(recording).map(|recording| recording.uid()) else {
            return Ok(());
        };
        // A process that lived only briefly may have been missed.
        let missed = || open(&list_of(Path::new("/"), process), process, now_ns).ok();
        let is_owners = |file: &File| file.metadata().is_ok_and(|metadata| metadata.uid() == owner);
        let list = self.list.take().or_else(missed).filter(is_owners);
        let dump = self.dump.take().filter(is_owners);
        if list.is_none() && dump.is_none() {
            return Ok(());
        }
        let mut options = OpenOptions::new();
        let create = options.write(true).create_new(true).mode(0o600);
        let mut copy = match create.open(with_extension(recording)) {
            // It may belong to anybody.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(()),
            copy => BufWriter::new(copy?),
        };
        if let Some(dump) = dump {
            jitdump::write_names(&mut BufReader::new(dump.take(LONGEST)), &mut copy)?;
        }
        // If both have a name for an address, the list takes precedence, since its end is newer.
        if let Some(list) = list {
            io::copy(&mut list.take(LONGEST), &mut copy)?;
        }
        copy.flush()
    }
}

fn with_extension(recording: &Path) -> PathBuf {
    let mut path = recording.as_os_str().to_owned();
    path.push(".");
    path.push(EXTENSION);
    path.into()
}

fn list_of(root: &Path, process: &Process) -> PathBuf {
    root.join(format!("tmp/perf-{}.map", process.own_pid))
}

/// Opens a file of names. Fails unless it is a regular file, written while the process lived.
fn open(path: &Path, process: &Process, now_ns: u64) -> io::Result<File> {
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
