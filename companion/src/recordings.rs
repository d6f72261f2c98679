//! Finds the recordings in a directory.

use std::collections::{BTreeSet, HashSet};
use std::ffi::{OsStr, OsString};
use std::fs::{self, OpenOptions};
use std::io::{self, Read};
use std::mem::{MaybeUninit, take};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use bytemuck::Zeroable;
use chase_format::layout::{EXTENSION, Header, MAGIC};
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};
use rustix::io::Errno;

/// More files may be created within the resolution of a directory's modification time.
const RESOLUTION: Duration = Duration::from_millis(100);
/// A recording gets its header at once. A file that has had none for so long is no recording.
const PATIENCE: Duration = Duration::from_secs(5);

/// The recordings found so far.
#[derive(Debug, Default)]
pub(crate) struct Recordings {
    /// Tells of new files: of a directory with very many, the list is not read again each time.
    news: Option<News>,
    /// Files that may become recordings yet.
    waiting: BTreeSet<PathBuf>,
    /// Without news: when the directory was last modified, if all recordings in it are known; otherwise it is read again.
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
        if let Some(news) = &self.news {
            if let Some(names) = news.names() {
                self.note(names.into_iter().map(|name| directory.join(name)));
                return self.take_ready(boot_id, until_ns);
            }
            self.all_known_at = None;
        }
        // What comes while the list is read is told, too.
        self.news = News::of(directory).ok();
        self.find_by_list(directory, boot_id, until_ns)
    }

    fn find_by_list(
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
        self.note(entries.filter_map(Result::ok).map(|entry| entry.path()));
        let new = self.take_ready(boot_id, until_ns);
        let are_all_known = self.waiting.is_empty() && is_older(modified, RESOLUTION);
        self.all_known_at = modified.filter(|_| are_all_known);
        new
    }

    fn note(&mut self, paths: impl Iterator<Item = PathBuf>) {
        let is_recording =
            |path: &PathBuf| path.extension().is_some_and(|extension| extension == EXTENSION);
        let new = paths.filter(|path| is_recording(path) && !self.known.contains(path));
        self.waiting.extend(new);
    }

    fn take_ready(&mut self, boot_id: [u8; 16], until_ns: u64) -> Vec<(PathBuf, Header)> {
        let mut new = Vec::new();
        for path in take(&mut self.waiting) {
            let is_ready = match recording_header(&path) {
                Ok(header) if header.boot_id != boot_id => true,
                Ok(header) if header.clock_start.monotonic_ns > until_ns => false,
                Ok(header) => {
                    new.push((path.clone(), header));
                    true
                }
                // It is gone; another one may come by its name.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(_) => is_older(modified_at(&path), PATIENCE),
            };
            match is_ready {
                true => self.known.insert(path),
                false => self.waiting.insert(path),
            };
        }
        new
    }
}

/// The names of files that come into a directory, as the kernel tells them.
#[derive(Debug)]
struct News(OwnedFd);

impl News {
    /// Begins to listen.
    fn of(directory: &Path) -> io::Result<Self> {
        let news = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?;
        let what = WatchFlags::CREATE | WatchFlags::MOVED_TO | WatchFlags::MOVE_SELF;
        inotify::add_watch(&news, directory, what | WatchFlags::ONLYDIR)?;
        Ok(Self(news))
    }

    /// Returns what has come since the last time; `None` if something may have been missed, or the directory is another one now.
    fn names(&self) -> Option<Vec<OsString>> {
        let mut buffer = [MaybeUninit::uninit(); 1 << 13];
        let mut reader = inotify::Reader::new(&self.0, &mut buffer);
        let mut names = Vec::new();
        loop {
            match reader.next() {
                Ok(event) => {
                    let end = ReadFlags::QUEUE_OVERFLOW | ReadFlags::IGNORED | ReadFlags::MOVE_SELF;
                    if event.events().intersects(end) {
                        return None;
                    }
                    let name = event.file_name().map(|name| OsStr::from_bytes(name.to_bytes()));
                    names.extend(name.map(OsStr::to_owned));
                }
                Err(Errno::WOULDBLOCK) => return Some(names),
                Err(_) => return None,
            }
        }
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

    /// What finds recordings by the kernel's word, and by lists alone; and whether it is settled, so that rounds cost nothing more.
    type Find<'a> = &'a mut dyn FnMut(u64) -> (Vec<PathBuf>, bool);

    fn by_news_and_by_list(directory: &Path, mut test: impl FnMut(Find<'_>)) {
        let paths = |new: Vec<(PathBuf, Header)>| new.into_iter().map(|(path, _)| path).collect();
        let mut recordings = Recordings::default();
        test(&mut |until_ns| {
            let new = recordings.find_by_list(directory, BOOT, until_ns);
            (paths(new), recordings.all_known_at.is_some())
        });
        let mut recordings = Recordings::default();
        test(&mut |until_ns| {
            let new = recordings.find_new(directory, BOOT, until_ns);
            (paths(new), recordings.news.is_some() && recordings.waiting.is_empty())
        });
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
        by_news_and_by_list(scratch.path(), |find| {
            assert_eq!(find(NOW_NS), (vec![at("own.1.chase")], true));
            assert_eq!(find(NOW_NS), (vec![], true));
        });
    }

    #[test]
    fn a_recording_that_is_not_ready_yet_is_found_later() {
        let scratch = tempfile::tempdir().expect("a directory");
        let path = scratch.path().join("new.1.chase");
        by_news_and_by_list(scratch.path(), |find| {
            assert!(find(NOW_NS).0.is_empty());
            fs::write(&path, "").expect("written");
            age(scratch.path());
            assert_eq!(find(NOW_NS), (vec![], false));
            write(&path, BOOT, NOW_NS + 1);
            assert_eq!(find(NOW_NS), (vec![], false));
            assert_eq!(find(NOW_NS + 2).0, [path.as_path()]);
            assert!(find(NOW_NS + 2).0.is_empty());
            fs::remove_file(&path).expect("removed");
        });
    }

    #[test]
    fn what_comes_by_another_name_is_found() {
        let scratch = tempfile::tempdir().expect("a directory");
        let (unfinished, path) =
            (scratch.path().join("unfinished"), scratch.path().join("new.1.chase"));
        by_news_and_by_list(scratch.path(), |find| {
            write(&unfinished, BOOT, NOW_NS - 1);
            assert!(find(NOW_NS).0.is_empty());
            fs::rename(&unfinished, &path).expect("renamed");
            assert_eq!(find(NOW_NS).0, [path.as_path()]);
            fs::remove_file(&path).expect("removed");
        });
    }

    /// Somebody may clear up meanwhile.
    #[test]
    fn a_directory_in_place_of_the_first_is_read() {
        let scratch = tempfile::tempdir().expect("a directory");
        let (directory, path) = (scratch.path().join("it"), scratch.path().join("it/new.1.chase"));
        for is_moved in [false, true] {
            by_news_and_by_list(&directory, |find| {
                assert!(find(NOW_NS).0.is_empty());
                fs::create_dir(&directory).expect("made");
                assert!(find(NOW_NS).0.is_empty());
                match is_moved {
                    true => fs::rename(&directory, scratch.path().join("other")),
                    false => fs::remove_dir(&directory),
                }
                .expect("gone");
                fs::create_dir(&directory).expect("made");
                write(&path, BOOT, NOW_NS - 1);
                assert_eq!(find(NOW_NS).0, [path.as_path()]);
                fs::remove_dir_all(&directory).expect("removed");
            });
        }
    }

    #[test]
    fn more_than_the_kernel_tells_is_found() {
        let most = fs::read_to_string("/proc/sys/fs/inotify/max_queued_events").expect("it tells");
        let most: usize = most.trim().parse().expect("a number");
        let scratch = tempfile::tempdir().expect("a directory");
        let mut recordings = Recordings::default();
        assert!(recordings.find_new(scratch.path(), BOOT, NOW_NS).is_empty());
        let other = scratch.path().join("other");
        for _ in 0..=most / 2 {
            // (Two alike, one after the other, would be told once.)
            for name in ["a", "b"] {
                fs::write(scratch.path().join(name), "").expect("written");
                fs::rename(scratch.path().join(name), &other).expect("renamed");
            }
        }
        write(&scratch.path().join("new.1.chase"), BOOT, NOW_NS - 1);
        assert_eq!(recordings.find_new(scratch.path(), BOOT, NOW_NS).len(), 1);
        write(&scratch.path().join("new.2.chase"), BOOT, NOW_NS - 1);
        assert_eq!(recordings.find_new(scratch.path(), BOOT, NOW_NS).len(), 1);
    }
}
