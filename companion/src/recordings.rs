//! Finds the recordings in a directory.

use std::collections::HashSet;
use std::fs::{self, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use bytemuck::Zeroable;
use chase_format::layout::{EXTENSION, Header, MAGIC};

/// More files may be created within the resolution of a directory's modification time.
const RESOLUTION: Duration = Duration::from_millis(100);
/// A recording gets its header at once. A file that has had none for so long is no recording.
const PATIENCE: Duration = Duration::from_secs(5);

/// The recordings found so far.
#[derive(Debug, Default)]
pub(crate) struct Recordings {
    /// When the directory was last modified, if all recordings in it are known; otherwise it is read again.
    all_known_at: Option<SystemTime>,
    known: HashSet<PathBuf>,
}

impl Recordings {
    /// Returns the new recordings of processes of this boot that began before `until_ns`.
    pub(crate) fn find_new(
        &mut self,
        directory: &Path,
        boot_id: [u8; 16],
        until_ns: u64,
    ) -> Vec<(PathBuf, Header)> {
        let modified = fs::metadata(directory).and_then(|metadata| metadata.modified()).ok();
        if modified.is_some() && modified == self.all_known_at {
            return Vec::new();
        }
        let Ok(entries) = fs::read_dir(directory) else { return Vec::new() };
        let mut new = Vec::new();
        let mut are_all_known = true;
        for path in entries.filter_map(Result::ok).map(|entry| entry.path()) {
            let is_recording = path.extension().is_some_and(|extension| extension == EXTENSION);
            if !is_recording || self.known.contains(&path) {
                continue;
            }
            let is_ready = match recording_header(&path) {
                Ok(header) if header.boot_id != boot_id => true,
                Ok(header) if header.clock_start.monotonic_ns > until_ns => false,
                Ok(header) => {
                    new.push((path.clone(), header));
                    true
                }
                Err(_) => is_older(modified_at(&path), PATIENCE),
            };
            if is_ready {
                self.known.insert(path);
            }
            are_all_known &= is_ready;
        }
        self.all_known_at = modified.filter(|_| are_all_known && is_older(modified, RESOLUTION));
        new
    }
}

/// Whether this is the recording of a process.
pub(crate) fn is_recording(path: &Path, pid: u32) -> bool {
    recording_header(path).is_ok_and(|header| header.pid == pid)
}

/// Reads the header of a recording.
fn recording_header(path: &Path) -> io::Result<Header> {
    let refused = || io::Error::from(io::ErrorKind::InvalidInput);
    let mut header = Header::zeroed();
    let mut options = OpenOptions::new();
    let open = options.read(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK);
    if !path.symlink_metadata()?.is_file() {
        return Err(refused());
    }
    let mut file = open.open(path)?;
    if !file.metadata()?.is_file() {
        return Err(refused());
    }
    file.read_exact(bytemuck::bytes_of_mut(&mut header))?;
    if header.magic == MAGIC { Ok(header) } else { Err(refused()) }
}

fn modified_at(path: &Path) -> Option<SystemTime> {
    path.symlink_metadata().and_then(|metadata| metadata.modified()).ok()
}

fn is_older(time: Option<SystemTime>, than: Duration) -> bool {
    time.is_some_and(|time| time.elapsed().is_ok_and(|elapsed| elapsed > than))
}

#[cfg(test)]
mod tests {
    use chase_format::layout::ClockPair;

    use super::*;

    const NOW_NS: u64 = 1_000;
    const BOOT: [u8; 16] = [1; 16];

    fn write(path: &Path, boot_id: [u8; 16], began_ns: u64) {
        let clock_start = ClockPair { monotonic_ns: began_ns, ..ClockPair::zeroed() };
        let header = Header { magic: MAGIC, boot_id, clock_start, ..Header::zeroed() };
        fs::write(path, bytemuck::bytes_of(&header)).expect("written");
    }

    fn age(path: &Path) {
        let long_ago = SystemTime::now() - 2 * PATIENCE;
        fs::File::open(path).and_then(|file| file.set_modified(long_ago)).expect("aged");
    }

    /// A file that is no recording, or one of another boot, must not make every round read the directory.
    #[test]
    fn a_directory_that_stays_as_it_is_is_read_once() {
        let scratch = tempfile::tempdir().expect("a directory");
        let at = |name: &str| scratch.path().join(name);
        write(&at("own.1.chase"), BOOT, NOW_NS - 1);
        write(&at("earlier.1.chase"), [2; 16], NOW_NS + 1);
        fs::write(at("broken.1.chase"), "").expect("written");
        age(&at("broken.1.chase"));
        age(scratch.path());
        let mut recordings = Recordings::default();
        let mut names = || {
            let new = recordings.find_new(scratch.path(), BOOT, NOW_NS);
            let paths: Vec<PathBuf> = new.into_iter().map(|(path, _)| path).collect();
            (paths, recordings.all_known_at.is_some())
        };
        assert_eq!(names(), (vec![at("own.1.chase")], true));
        assert_eq!(names(), (vec![], true));
    }

    #[test]
    fn a_recording_that_is_not_ready_yet_is_found_later() {
        let scratch = tempfile::tempdir().expect("a directory");
        let path = scratch.path().join("new.1.chase");
        fs::write(&path, "").expect("written");
        age(scratch.path());
        let mut recordings = Recordings::default();
        assert!(recordings.find_new(scratch.path(), BOOT, NOW_NS).is_empty());
        write(&path, BOOT, NOW_NS + 1);
        assert!(recordings.find_new(scratch.path(), BOOT, NOW_NS).is_empty());
        assert_eq!(recordings.find_new(scratch.path(), BOOT, NOW_NS + 2).len(), 1);
    }
}
