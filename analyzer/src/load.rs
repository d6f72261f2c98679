//! Finding and reading files.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

use chase_recorder::layout::{EXTENSION, Header, ORIGIN_EXEC, PAGE};
use chase_recorder::reader::{Recording, SyscallsFile, parse_header, parse_syscalls_header};
use rustix::time::{ClockId, clock_gettime};

use crate::clock::{Clock, Ns};
use crate::error::{Cause, Error, Failure};
use crate::image::{Image, Liveness};
use crate::run::{Catalog, Member, Run, group};
use crate::unrecorded::{self, file_of, is_alone};

/// A `.syscalls` file that was last written so long before its recording began is another's.
const STALE_NS: u64 = 1_000_000_000;

/// A run, read.
#[derive(Debug)]
pub struct Loaded {
    /// Its images by time of start, parents before children; never empty.
    pub images: Vec<Image>,
    /// Files of the path asked for that could not be read.
    pub failures: Vec<Failure>,
    /// How many other, older runs there are at the path.
    pub other_runs: usize,
}

/// Finds the recordings at `path`, a file or a directory, reading only their headers.
///
/// # Errors
///
/// If there is nothing, or nothing that can be read.
pub fn scan(path: &Path) -> Result<Catalog, Error> {
    let metadata = fs::metadata(path).map_err(|source| match source.kind() {
        ErrorKind::NotFound => Error::Missing { path: path.into() },
        _ => Failure { path: path.into(), cause: source.into() }.into(),
    })?;
    if !metadata.is_dir() {
        let header = read_header(path)?.1;
        return Ok(Catalog { runs: group(vec![(path.into(), header)]), failures: Vec::new() });
    }
    let mut found = Vec::new();
    let mut failures = Vec::new();
    for file in list(path)? {
        match read_header(&file) {
            Ok((_, header)) => found.push((file, header)),
            Err(failure) => failures.push(failure),
        }
    }
    match (found.is_empty(), failures.is_empty()) {
        (true, true) => Err(Error::Empty { path: path.into() }),
        (true, false) => Err(Error::AllFailed { path: path.into(), failures }),
        (false, _) => Ok(Catalog { runs: group(found), failures }),
    }
}

/// Reads the newest run at `path`, a file or a directory.
///
/// # Errors
///
/// If there is nothing, or nothing that can be read. Damaged files among good ones are no error.
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

/// As [`load_run`]; tells `progress` now and then how many bytes of all files were read, as a
/// fraction of 1.
///
/// # Errors
///
/// If none can be read.
pub fn load_run_with(run: &Run, progress: &mut dyn FnMut(f64)) -> Result<Loaded, Error> {
    let sizes = run.members.iter().map(|member| member.header.committed.max(PAGE as u64));
    let all = sizes.fold(0, u64::saturating_add) as f64;
    let mut done = 0_u64;
    let mut count = |bytes: u64| {
        done = done.saturating_add(bytes);
        progress((done as f64 / all).min(1.0));
    };
    let mut failures = Vec::new();
    let mut read_members = Vec::new();
    let mut files = Vec::new();
    // Places of the members among the images; those that can't be read have none.
    let mut places = Vec::new();
    for (at, member) in run.members.iter().enumerate() {
        places.push(read_members.len());
        let read = match is_alone(&member.path) {
            true => Ok(Recording::empty(member.header)),
            false => read(&member.path, &mut count),
        };
        let file = match syscalls_of(member) {
            Ok(file) => file,
            Err(failure) => {
                failures.push(failure);
                None
            }
        };
        match read {
            Ok(recording) => {
                read_members.push((at, recording));
                files.push(file);
            }
            Err(failure) => {
                failures.push(failure);
                places[at] = usize::MAX;
            }
        }
    }
    let clocks = clocks(&read_members);
    let mut images = Vec::new();
    for (((at, recording), clock), file) in read_members.into_iter().zip(clocks).zip(files) {
        let member = &run.members[at];
        let liveness = liveness(member, &run.members[at + 1..]);
        let mut image = match file {
            Some(file) if is_alone(&member.path) => Image::unrecorded(member.path.clone(), file),
            file => Image::new(member.path.clone(), recording, clock, liveness).with_syscalls(file),
        };
        image.parent =
            member.parent.map(|(parent, _)| places[parent]).filter(|&place| place != usize::MAX);
        images.push(image);
    }
    if images.is_empty() {
        return Err(match failures.len() {
            1 => failures.remove(0).into(),
            _ => Error::AllFailed { path: directory_of(run), failures },
        });
    }
    Ok(Loaded { images, failures, other_runs: 0 })
}

/// Processes too short to calibrate their clock take the rate of the one that did it longest.
fn clocks(recordings: &[(usize, Recording<'static>)]) -> Vec<Clock> {
    let boot_of = |recording: &Recording<'_>| recording.header().boot_id;
    let mut best: HashMap<[u8; 16], Clock> = HashMap::new();
    for (_, recording) in recordings {
        let clock = Clock::new(recording.header());
        let longest = best.entry(boot_of(recording)).or_insert(clock);
        if clock.interval_ns() > longest.interval_ns() {
            *longest = clock;
        }
    }
    let refined = |(_, recording): &(usize, Recording<'_>)| {
        let mut clock = Clock::new(recording.header());
        clock.refine(&best[&boot_of(recording)]);
        clock
    };
    recordings.iter().map(refined).collect()
}

fn directory_of(run: &Run) -> PathBuf {
    run.root().path.parent().map(Path::to_path_buf).unwrap_or_default()
}

fn liveness(member: &Member, later: &[Member]) -> Liveness {
    let header = &member.header;
    let replaces = |other: &&Member| {
        let other = &other.header;
        other.origin == ORIGIN_EXEC
            && other.boot_id == header.boot_id
            && other.pid == header.pid
            && other.process_start == header.process_start
            && header.process_start != 0
    };
    if let Some(next) = later.iter().find(replaces) {
        Liveness::ReplacedAt(Ns(next.header.clock_start.monotonic_ns))
    } else if is_running(header) {
        let now = clock_gettime(ClockId::Monotonic);
        Liveness::RunsAt(Ns((now.tv_sec as u64).saturating_mul(1_000_000_000) + now.tv_nsec as u64))
    } else {
        Liveness::Gone
    }
}

/// Whether the process is there now, on this machine: same boot, and a process with the same
/// number that started at the same moment.
pub(crate) fn is_running(header: &Header) -> bool {
    let boot_id = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let digits: String = boot_id.chars().filter(char::is_ascii_hexdigit).collect();
    let recorded: String = header.boot_id.iter().map(|byte| format!("{byte:02x}")).collect();
    if digits != recorded || header.process_start == 0 {
        return false;
    }
    let stat = fs::read_to_string(format!("/proc/{}/stat", header.pid)).unwrap_or_default();
    // Fields are counted after the name, which may hold blanks and brackets. A zombie has ended.
    let mut fields = stat.rsplit_once(") ").unwrap_or_default().1.split(' ');
    let state = fields.next().unwrap_or("Z");
    let start = fields.nth(18).and_then(|field| field.parse().ok());
    state != "Z" && state != "X" && start == Some(header.process_start)
}

fn list(directory: &Path) -> Result<Vec<PathBuf>, Error> {
    let failed = |source| Error::Directory { path: directory.into(), source };
    let mut files = Vec::new();
    for entry in fs::read_dir(directory).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let is_recording = path.extension().is_some_and(|extension| extension == EXTENSION);
        if (is_recording || is_alone(&path)) && path.is_file() {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// The first page of a file, and the header in it.
fn read_header(path: &Path) -> Result<(Vec<u8>, Header), Failure> {
    let fail = |cause| Failure { path: path.into(), cause };
    let file = File::open(path).map_err(|error| fail(error.into()))?;
    let mut bytes = Vec::new();
    file.take(PAGE as u64).read_to_end(&mut bytes).map_err(|error| fail(error.into()))?;
    let header = match is_alone(path) {
        true => parse_syscalls_header(&bytes).map(|header| unrecorded::header(&header)),
        false => parse_header(&bytes),
    };
    Ok((bytes, header.map_err(|error| fail(error.into()))?))
}

/// A whole recording. What is beyond the committed bytes was reserved and never written. The
/// header that says how many they are is the one that is kept, for the process may go on writing.
fn read(path: &Path, count: &mut dyn FnMut(u64)) -> Result<Recording<'static>, Failure> {
    /// Bytes between two calls of `count`.
    const STEP: u64 = 16 << 20;
    let fail = |cause: Cause| Failure { path: path.into(), cause };
    let mut read = || -> Result<Vec<u8>, std::io::Error> {
        let mut file = File::open(path)?;
        let len = file.metadata()?.len();
        let mut bytes = Vec::new();
        Read::by_ref(&mut file).take(PAGE as u64).read_to_end(&mut bytes)?;
        let committed = parse_header(&bytes).map_or(0, |header| header.committed);
        // Without a sensible number, all of the file may be the recording.
        let wanted = if committed < PAGE as u64 { len } else { committed.min(len) };
        bytes.reserve_exact(wanted.saturating_sub(bytes.len() as u64) as usize);
        loop {
            let left = wanted.saturating_sub(bytes.len() as u64);
            let read = Read::by_ref(&mut file).take(left.min(STEP)).read_to_end(&mut bytes)?;
            count(read as u64);
            // The file may be shorter than it was.
            if read == 0 {
                return Ok(bytes);
            }
        }
    };
    let bytes = read().map_err(|error| fail(error.into()))?;
    Recording::parse(bytes).map_err(|error| fail(error.into()))
}

/// What the companion wrote of a member; `None` where it was not there.
fn syscalls_of(member: &Member) -> Result<Option<SyscallsFile<'static>>, Failure> {
    let path = match is_alone(&member.path) {
        true => member.path.clone(),
        false => file_of(&member.path),
    };
    let fail = |cause: Cause| Failure { path: path.clone(), cause };
    let bytes = match fs::read(&path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(fail(error.into())),
    };
    let file = SyscallsFile::parse(bytes).map_err(|error| fail(error.into()))?;
    let (own, other) = (&member.header, file.header());
    let latest_ns = other.began_ns.max(other.written_ns).max(other.ended_ns);
    // A file left from another process with the same number, whose recording was replaced.
    let is_older = latest_ns.saturating_add(STALE_NS) < own.clock_start.monotonic_ns;
    if own.pid != other.pid || own.boot_id != other.boot_id || is_older {
        return Err(fail(Cause::OtherProcess { pid: other.pid, expected: own.pid }));
    }
    Ok(Some(file))
}
