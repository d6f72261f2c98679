//! Finds and reads files.

use std::collections::{HashMap, HashSet};
use std::fs::{self, File};
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use chase_recorder::layout::{EXTENSION, Header, ORIGIN_EXEC, PAGE};
use chase_recorder::reader::{Bytes, Recording, SyscallsFile, parse_header, parse_syscalls_header};
use memmap2::{Mmap, MmapOptions};
use rustix::time::{ClockId, clock_gettime};

use crate::clock::{Clock, Ns};
use crate::error::{Cause, Error, Failure};
use crate::fold::{self, Files, Unfolded};
use crate::image::{Image, Liveness};
use crate::liveness::is_running;
use crate::run::{Catalog, Found, Member, Run, group};
use crate::shelf::Shelf;
use crate::unrecorded::{self, file_of, is_alone};
use crate::workers::{Workers, parts};

/// How many mappings a process may have, where the kernel doesn't say.
const MAPPINGS: usize = 65_530;
/// Recordings that are mapped individually at present, of all runs.
static MAPPED: AtomicUsize = AtomicUsize::new(0);
/// How many headers a worker reads at a time.
const HEADERS: usize = 256;
/// How many of very many recordings it reads at a time.
const MEMBERS: usize = 64;
/// A `.syscalls` file last written this long before its recording began belongs to another recording.
const STALE_NS: u64 = 1_000_000_000;

/// A run that was read.
#[derive(Debug)]
pub struct Loaded {
    /// Its images by start time, parents before children; never empty.
    pub images: Vec<Image>,
    /// Files at the given path that could not be read.
    pub failures: Vec<Failure>,
    /// The number of other, older runs at the path.
    pub other_runs: usize,
}

/// Finds the recordings at `path`, a file or a directory. Only reads their headers.
///
/// # Errors
///
/// If there are none, or none can be read.
pub fn scan(path: &Path) -> Result<Catalog, Error> {
    scan_all(&[path.into()])
}

/// Like [`scan`], for several files and directories; duplicates count once.
///
/// # Errors
///
/// If there are none at one of them, or none can be read at any.
pub fn scan_all(paths: &[PathBuf]) -> Result<Catalog, Error> {
    scan_since(paths, Ns(0))
}

/// Like [`scan_all`], but finds only runs that began at this time, in ns since 1970, or later; of those before, some may be missing,
/// or parts of them. Where many runs are in one directory, that is faster. If all are from before, there may be no runs.
///
/// # Errors
///
/// As [`scan_all`].
pub fn scan_since(paths: &[PathBuf], since: Ns) -> Result<Catalog, Error> {
    let mut files = Vec::new();
    for path in paths {
        let metadata = fs::metadata(path).map_err(|source| match source.kind() {
            ErrorKind::NotFound => Error::Missing { path: path.into() },
            _ => Failure { path: path.into(), cause: source.into() }.into(),
        })?;
        if !metadata.is_dir() {
            files.push(path.clone());
            continue;
        }
        let mut listed = list(path)?;
        if listed.is_empty() {
            return Err(Error::Empty { path: path.into() });
        }
        files.append(&mut listed);
    }
    if paths.len() > 1 {
        files.sort();
        files.dedup();
    }
    let (archives, files): (Vec<PathBuf>, Vec<PathBuf>) =
        files.into_iter().partition(|file| fold::is_archive(file));
    let mut found = Vec::new();
    let mut failures = Vec::new();
    let pieces: Vec<&[PathBuf]> = files.chunks(HEADERS).collect();
    let headers = |at: usize| pieces[at].iter().map(|path| read_header(path)).collect::<Vec<_>>();
    let mut all = files.iter().cloned();
    Workers::all().in_order(pieces.len(), headers, |headers| {
        for (header, path) in headers.into_iter().zip(all.by_ref()) {
            match header {
                Ok(header) => found.push(Found { path, header, folded: None }),
                Err(failure) => failures.push(failure),
            }
        }
    });
    let (older, archives): (Vec<PathBuf>, Vec<PathBuf>) =
        archives.into_iter().partition(|archive| fold::is_from_before(archive, since));
    let are_some_older = !older.is_empty();
    for archive in archives {
        let shelf = Shelf::new(archive.parent().unwrap_or(Path::new(".")));
        let (unfolded, failed) = fold::unfold(&archive, &shelf);
        failures.extend(failed);
        let headers: Vec<Header> = found.iter().map(|one| one.header).collect();
        let new = fold::without(unfolded, headers.iter());
        found.extend(new.map(|Unfolded { path, header, files }| Found {
            path,
            header,
            folded: Some(files),
        }));
    }
    let found = without_leftovers(found);
    match (found.is_empty(), paths) {
        (false, _) => Ok(Catalog { runs: group(found), failures }),
        (true, [path]) if failures.len() == 1 && failures[0].path == *path => {
            Err(failures.remove(0).into())
        }
        (true, _) if are_some_older => Ok(Catalog { runs: Vec::new(), failures }),
        (true, _) => {
            let path = paths.first().cloned().unwrap_or_default();
            Err(Error::AllFailed { path, failures })
        }
    }
}

/// Drops the companion's files that were left beside an archive when a fold was ended after it had removed their recordings.
fn without_leftovers(found: Vec<Found>) -> Vec<Found> {
    let is_whole = |one: &Found| has_recording(&one.path, one.folded.as_ref());
    let place = |one: &Found| match &one.folded {
        Some(_) => fold::unfolded_place(&one.path),
        None => one.path.clone(),
    };
    let folded = found.iter().filter(|one| one.folded.is_some() && is_whole(one));
    let known: HashSet<PathBuf> = folded.map(|one| file_of(&place(one))).collect();
    let is_known = |one: &Found| !is_whole(one) && known.contains(&place(one));
    found.into_iter().filter(|one| !is_known(one)).collect()
}

/// Reads the newest run at `path`, a file or a directory.
///
/// # Errors
///
/// If there is none, or none can be read. Damaged files among good ones are no error.
pub fn load(path: &Path) -> Result<Loaded, Error> {
    let Catalog { runs, mut failures } = scan(path)?;
    let mut loaded = load_run(&runs[0])?;
    failures.append(&mut loaded.failures);
    Ok(Loaded { failures, other_runs: runs.len() - 1, ..loaded })
}

/// Reads all members of a run.
///
/// # Errors
///
/// If none can be read.
pub fn load_run(run: &Run) -> Result<Loaded, Error> {
    load_run_with(run, &mut |_| {})
}

/// Like [`load_run`]; from time to time reports to `progress` which fraction of all bytes was read.
///
/// # Errors
///
/// If none can be read.
pub fn load_run_with(run: &Run, progress: &mut dyn FnMut(f64)) -> Result<Loaded, Error> {
    let size_of = |member: &Member| member.header.committed.max(PAGE as u64);
    let all = run.members.iter().map(size_of).fold(0, u64::saturating_add) as f64;
    let mut done = 0_u64;
    let liveness = liveness(&run.members);
    let clocks = Clocks::new(&run.members);
    let mut failures = Vec::new();
    let mut images: Vec<Image> = Vec::with_capacity(run.members.len());
    // The index of each member among the images; `None` for those that can't be read.
    let mut places: Vec<Option<usize>> = Vec::new();
    let are_many = run.members.len() > MEMBERS * MEMBERS;
    let store =
        Store { shelf: Shelf::new(&directory_of(run)), most_mapped: most_mapped(), are_many };
    // Handing over each of very many would take longer than reading it.
    let least = if are_many { MEMBERS } else { 1 };
    let pieces: Vec<_> = parts(run.members.iter().map(|_| 1), least);
    let read = |at: usize| {
        let read_one = |at: usize| {
            let member = &run.members[at];
            (image(member, liveness[at], &clocks, &store), member)
        };
        pieces[at].clone().map(read_one).collect::<Vec<_>>()
    };
    Workers::all().in_order(pieces.len(), read, |read| {
        for ((read, failed), member) in read {
            failures.extend(failed);
            places.push(read.is_some().then_some(images.len()));
            images.extend(read.map(|image| Image {
                parent: member.parent.and_then(|(parent, _)| places[parent]),
                ..image
            }));
            done = done.saturating_add(size_of(member));
        }
        progress((done as f64 / all).min(1.0));
    });
    if images.is_empty() {
        return Err(match failures.len() {
            1 => failures.remove(0).into(),
            _ => Error::AllFailed { path: directory_of(run), failures },
        });
    }
    Ok(Loaded { images, failures, other_runs: 0 })
}

/// Where the recordings of ended processes are while they are read.
struct Store {
    shelf: Shelf,
    /// Beyond so many mappings of files, small recordings go to the shelf.
    most_mapped: usize,
    /// Whether the companion's files go there, too: of very many processes, they are more than fits into memory.
    are_many: bool,
}

/// Reads a member's files, as far as possible; also returns what failed.
fn image(
    member: &Member,
    liveness: Liveness,
    clocks: &Clocks,
    store: &Store,
) -> (Option<Image>, Vec<Failure>) {
    let mut failures = Vec::new();
    let file = syscalls_of(member, store).unwrap_or_else(|failure| {
        failures.push(failure);
        None
    });
    let path = member.path.clone();
    let recording = match (has_recording(&path, member.folded.as_ref()), &file) {
        (false, Some(_)) => return (file.map(|file| Image::unrecorded(path, file)), failures),
        (false, None) => Ok(Recording::empty(member.header)),
        (true, _) => match member.folded.as_ref().and_then(|files| files.recording.clone()) {
            Some(recording) => parse(&path, Ok(Bytes::owned(recording))),
            None => read(&path, liveness, store),
        },
    };
    let image = match recording {
        Ok(recording) => {
            let clock = clocks.of_boot(recording.header());
            // Nothing in the recording can be later.
            let liveness = match liveness {
                Liveness::RunsAt(_) => Liveness::RunsAt(now()),
                gone => gone,
            };
            Some(Image::new(path, recording, clock, liveness).with_syscalls(file))
        }
        Err(failure) => {
            failures.push(failure);
            None
        }
    };
    (image, failures)
}

/// Clocks by boot: processes too short for calibration use the rate of the one that was measured longest.
struct Clocks(HashMap<[u8; 16], Clock>);

impl Clocks {
    fn new(members: &[Member]) -> Self {
        let mut best: HashMap<[u8; 16], Clock> = HashMap::new();
        for Member { header, .. } in members {
            let clock = Clock::new(header);
            let longest = best.entry(header.boot_id).or_insert(clock);
            if clock.interval_ns() > longest.interval_ns() {
                *longest = clock;
            }
        }
        Self(best)
    }

    fn of_boot(&self, header: &Header) -> Clock {
        let mut clock = Clock::new(header);
        self.0.get(&header.boot_id).inspect(|best| clock.refine(best));
        clock
    }
}

fn directory_of(run: &Run) -> PathBuf {
    run.root().path.parent().map(Path::to_path_buf).unwrap_or_default()
}

/// Finds out what is known of each member's process from elsewhere.
fn liveness(members: &[Member]) -> Vec<Liveness> {
    // The next image of each process, going backwards.
    let mut next: HashMap<_, Ns> = HashMap::new();
    let of = |Member { header, .. }: &Member| {
        let process = (header.boot_id, header.pid, header.process_start);
        let replaced = next.get(&process).copied();
        if header.origin == ORIGIN_EXEC && header.process_start != 0 {
            next.insert(process, Ns(header.clock_start.monotonic_ns));
        }
        match replaced {
            Some(moment) => Liveness::ReplacedAt(moment),
            None if is_running(header) => Liveness::RunsAt(now()),
            None => Liveness::Gone,
        }
    };
    let mut all: Vec<Liveness> = members.iter().rev().map(of).collect();
    all.reverse();
    all
}

fn now() -> Ns {
    let now = clock_gettime(ClockId::Monotonic);
    Ns((now.tv_sec as u64).saturating_mul(1_000_000_000) + now.tv_nsec as u64)
}

fn list(directory: &Path) -> Result<Vec<PathBuf>, Error> {
    let failed = |source| Error::Directory { path: directory.into(), source };
    let mut files = Vec::new();
    for entry in fs::read_dir(directory).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let path = entry.path();
        let is_recording = path.extension().is_some_and(|extension| extension == EXTENSION);
        // (The type in the directory entry is enough, except for links.)
        let is_file = || entry.file_type().is_ok_and(|of| of.is_file()) || path.is_file();
        if (is_recording || fold::is_archive(&path) || is_alone(&path)) && is_file() {
            files.push(path);
        }
    }
    // All in one directory: comparing whole paths, part by part, would take longer than all else here.
    files.sort_by(|a, b| a.file_name().cmp(&b.file_name()));
    Ok(files)
}

/// Reads the header from the first page of a file.
fn read_header(path: &Path) -> Result<Header, Failure> {
    let fail = |cause| Failure { path: path.into(), cause };
    let file = File::open(path).map_err(|error| fail(error.into()))?;
    let bytes = first_page(&file).map_err(|error| fail(error.into()))?;
    let header = match is_alone(path) {
        true => parse_syscalls_header(&bytes).map(|header| unrecorded::header(&header)),
        false => parse_header(&bytes),
    };
    header.map_err(|error| fail(error.into()))
}

/// Reads a recording. That of a running process is copied; that of a process that is gone is mapped, so memory only
/// holds what is read of it. Where there are more than can be mapped, small ones go to the shelf.
fn read(path: &Path, liveness: Liveness, store: &Store) -> Result<Recording<'static>, Failure> {
    let bytes = match liveness {
        Liveness::RunsAt(_) => copy(path).map(Bytes::from),
        _ if MAPPED.load(Ordering::Relaxed) >= store.most_mapped && is_small(path) => {
            copy(path).map(|bytes| Bytes::owned(store.shelf.put(&bytes)))
        }
        _ => map(path).map(|map| Bytes::owned(Mapped::new(map))),
    };
    parse(path, bytes)
}

/// A mapping that is counted as long as it exists.
#[derive(Debug)]
struct Mapped(Mmap);

impl Mapped {
    fn new(map: Mmap) -> Self {
        MAPPED.fetch_add(1, Ordering::Relaxed);
        Self(map)
    }
}

impl AsRef<[u8]> for Mapped {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        MAPPED.fetch_sub(1, Ordering::Relaxed);
    }
}

/// How many recordings may be mapped individually: three quarters of the mappings that a process may have.
fn most_mapped() -> usize {
    let text = fs::read_to_string("/proc/sys/vm/max_map_count").unwrap_or_default();
    let mappings: usize = text.trim().parse().unwrap_or(MAPPINGS);
    mappings - mappings / 4
}

fn is_small(path: &Path) -> bool {
    const SMALL: u64 = 4 << 20;
    fs::metadata(path).is_ok_and(|metadata| metadata.len() <= SMALL)
}

fn parse(
    path: &Path,
    bytes: std::io::Result<Bytes<'static>>,
) -> Result<Recording<'static>, Failure> {
    let fail = |cause: Cause| Failure { path: path.into(), cause };
    let bytes = bytes.map_err(|error| fail(error.into()))?;
    Recording::parse(bytes).map_err(|error| fail(error.into()))
}

fn copy(path: &Path) -> Result<Vec<u8>, std::io::Error> {
    let file = File::open(path)?;
    let (mut bytes, used) = begin(&file)?;
    let left = used.saturating_sub(bytes.len() as u64);
    bytes.reserve_exact(left as usize);
    file.take(left).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn map(path: &Path) -> Result<Mmap, std::io::Error> {
    let file = File::open(path)?;
    let (_, used) = begin(&file)?;
    // SAFETY: the process that wrote the file is gone, and no other writes to it: a recording is always a new file.
    // If the process can't be seen from here and is running, it only changes numbers, which the reader copies before
    // it checks them, and never shortens the file.
    unsafe { MmapOptions::new().len(used as usize).map(&file) }
}

/// Returns the first page of a file, and how many bytes are used: what follows the committed ones was reserved and
/// never written. The header with that number is the one that is returned, since the process may still be writing.
fn begin(file: &File) -> Result<(Vec<u8>, u64), std::io::Error> {
    let len = file.metadata()?.len();
    let page = first_page(file)?;
    let committed = parse_header(&page).map_or(0, |header| header.committed);
    // If the number is invalid, the whole file may be the recording.
    let used = if committed < PAGE as u64 { len } else { committed.min(len) };
    Ok((page, used))
}

/// Reads the first page, or what there is of it: mostly with one system call.
fn first_page(mut file: &File) -> Result<Vec<u8>, std::io::Error> {
    let mut page = vec![0; PAGE];
    let mut len = 0;
    while len < PAGE {
        match file.read(&mut page[len..]) {
            Ok(0) => break,
            Ok(more) => len += more,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    page.truncate(len);
    Ok(page)
}

/// Whether there is more than a companion's file.
fn has_recording(path: &Path, folded: Option<&Files>) -> bool {
    folded.map_or_else(|| !is_alone(path), |files| files.recording.is_some())
}

/// Reads the companion's file about a member; `None` if there is none.
fn syscalls_of(member: &Member, store: &Store) -> Result<Option<SyscallsFile<'static>>, Failure> {
    let is_whole = has_recording(&member.path, member.folded.as_ref());
    let path = if is_whole { file_of(&member.path) } else { member.path.clone() };
    let fail = |cause: Cause| Failure { path: path.clone(), cause };
    let read = match &member.folded {
        Some(files) => match &files.syscalls {
            Some(file) => Ok(Bytes::owned(file.clone())),
            None => return Ok(None),
        },
        None => fs::read(&path).map(|bytes| match store.are_many {
            true => Bytes::owned(store.shelf.put(&bytes)),
            false => Bytes::from(bytes),
        }),
    };
    let bytes = match read {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(fail(error.into())),
    };
    let file = SyscallsFile::parse(bytes).map_err(|error| fail(error.into()))?;
    let (own, other) = (&member.header, file.header());
    let latest_ns = other.began_ns.max(other.written_ns).max(other.ended_ns);
    // A file of an earlier process with the same id, whose recording was replaced.
    let is_older = latest_ns.saturating_add(STALE_NS) < own.clock_start.monotonic_ns;
    if own.pid != other.pid || own.boot_id != other.boot_id || is_older {
        return Err(fail(Cause::OtherProcess { pid: other.pid, expected: own.pid }));
    }
    Ok(Some(file))
}
