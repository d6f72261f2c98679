//! Folds recordings of many ended processes into one file: a `tar` archive, compressed by Zstandard.
//!
//! Recordings of short processes are similar, and mostly empty. Folded, they take a small part of the space, and one
//! file; nothing is lost. Any `tar` and `zstd` can unpack them.

use std::cell::Cell;
use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Read, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::{SystemTime, UNIX_EPOCH};

use chase_recorder::layout::{END_EXEC, EXTENSION, Header, PAGE};
use chase_recorder::reader::{Recording, parse_header, parse_syscalls_header};
use chase_recorder::syscalls::{STATE_COMPLETE, STATE_STOPPED};
use zstd::stream::read::Decoder;
use zstd::stream::write::Encoder;

use crate::clock::Ns;
use crate::error::{Cause, Error, Failure};
use crate::liveness::is_running;
use crate::read_ahead::ReadAhead;
use crate::shelf::{Shelf, Shelved};
use crate::unrecorded::{self, file_of, is_alone};

/// How archives' names begin, before the time in ms since 1970.
const PREFIX: &str = "folded-";
/// The suffix of archives' names.
const SUFFIX: &str = ".chase.tar.zst";
/// Larger recordings are not folded.
const LARGEST: u64 = 4 << 20;
/// The maximum number of bytes that each byte of an archive may unpack to. Nearly empty recordings reach a few thousand.
const RATIO: u64 = 10_000;
/// The compression level, and the base-2 logarithm of the window: 8 MB, which every decoder supports.
const LEVEL: i32 = 3;
const WINDOW_LOG: u32 = 23;

/// The result of folding.
#[derive(Clone, Debug, Default)]
pub struct Folded {
    /// The archive; `None` if there was nothing to fold.
    pub archive: Option<PathBuf>,
    /// The number of recordings in it, with files of processes that have none.
    pub recordings: usize,
    /// The bytes that they took before.
    pub bytes_before: u64,
    /// The bytes that the archive takes.
    pub bytes: u64,
}

/// Whether a path is that of an archive of recordings.
pub(crate) fn is_archive(path: &Path) -> bool {
    path.file_name().and_then(OsStr::to_str).is_some_and(|name| name.ends_with(SUFFIX))
}

/// Whether an archive was made before `since`, in ns since 1970, as its name says: what began later is not in it.
pub(crate) fn is_from_before(archive: &Path, since: Ns) -> bool {
    let name = archive.file_name().and_then(OsStr::to_str).unwrap_or_default();
    let made = name.strip_prefix(PREFIX).and_then(|rest| rest.split('-').next()?.parse().ok());
    made.is_some_and(|ms: u64| ms < since.0 / 1_000_000)
}

/// Folds the recordings in a directory whose processes have ended, and removes them. Keeps those to which a companion
/// may still write, and large ones.
///
/// # Errors
///
/// If the directory can't be read or written. No recording is removed before the archive is on the disk.
pub fn fold(directory: &Path) -> Result<Folded, Error> {
    let failed = |source| Error::Fold { path: directory.into(), source };
    // Only one fold at a time.
    let lock = File::open(directory).map_err(failed)?;
    lock.lock().map_err(failed)?;
    let mut paths = Vec::new();
    for entry in fs::read_dir(directory).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let is_recording = path.extension().is_some_and(|extension| extension == EXTENSION);
        if is_recording || is_alone(&path) {
            paths.push(path);
        }
    }
    // Puts those of one program beside each other.
    paths.sort();
    let ended: Vec<PathBuf> = paths.into_iter().filter(|path| may_be_folded(path)).collect();
    if ended.is_empty() {
        return Ok(Folded::default());
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
    let archive = directory.join(format!("{PREFIX}{now}-{}{SUFFIX}", std::process::id()));
    let unfinished = archive.with_extension("unfinished");
    let written = write(&unfinished, &ended).and_then(|folded| {
        fs::rename(&unfinished, &archive)?;
        lock.sync_all()?;
        Ok(folded)
    });
    let (bytes_before, removable) = written.map_err(|source| {
        let _ = fs::remove_file(&unfinished);
        failed(source)
    })?;
    for path in &removable {
        fs::remove_file(path).map_err(failed)?;
    }
    let bytes = fs::metadata(&archive).map_err(failed)?.len();
    Ok(Folded { archive: Some(archive), recordings: ended.len(), bytes_before, bytes })
}

/// Whether nobody writes to a recording any more, nor to its companion's file.
fn may_be_folded(path: &Path) -> bool {
    if is_alone(path) {
        return read_start(path).is_ok_and(|(page, len)| len <= LARGEST && is_written(&page));
    }
    let Ok((header, len)) = header_of(path) else { return false };
    if len > LARGEST || header.end_kind != END_EXEC && is_running(&header) {
        return false;
    }
    match read_start(&file_of(path)) {
        Ok((page, _)) => is_written(&page),
        // The file may be about to be created.
        Err(error) if error.kind() == io::ErrorKind::NotFound => !is_watched(path),
        Err(_) => false,
    }
}

/// Whether the companion writes no more to the file that begins so.
fn is_written(page: &[u8]) -> bool {
    parse_syscalls_header(page)
        .is_ok_and(|header| matches!(header.state, STATE_COMPLETE | STATE_STOPPED))
}

/// Whether a companion watched the process.
fn is_watched(path: &Path) -> bool {
    let Ok(bytes) = fs::read(path) else { return true };
    Recording::parse(bytes).map_or(true, |recording| {
        recording.meta().filter(|(key, _)| key == "syscalls").any(|(_, value)| value == "on")
    })
}

fn header_of(path: &Path) -> io::Result<(Header, u64)> {
    let (page, len) = read_start(path)?;
    Ok((parse_header(&page).map_err(io::Error::other)?, len))
}

/// Returns the first page of a file, and its size on the disk.
fn read_start(path: &Path) -> io::Result<(Vec<u8>, u64)> {
    let file = File::open(path)?;
    let len = file.metadata()?.len();
    let mut page = Vec::new();
    file.take(PAGE as u64).read_to_end(&mut page)?;
    Ok((page, len))
}

/// Writes the archive; returns the size of the files, and which they are.
fn write(archive: &Path, recordings: &[PathBuf]) -> io::Result<(u64, Vec<PathBuf>)> {
    // Recordings of one program are similar: a window finds what the previous ones contain.
    let mut encoder = Encoder::new(BufWriter::new(create(archive)?), LEVEL)?;
    encoder.window_log(WINDOW_LOG)?;
    encoder.include_checksum(true)?;
    let mut tar = tar::Builder::new(encoder);
    let (mut all, mut files) = (0, Vec::new());
    let mut bytes = Vec::new();
    for path in recordings.iter().flat_map(|path| [path.clone(), file_of(path)]) {
        bytes.clear();
        match File::open(&path).and_then(|mut file| file.read_to_end(&mut bytes)) {
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(error),
        }
        let Some(name) = path.file_name() else { continue };
        // If the end was not seen, the file contains space that was reserved and never written.
        let committed = parse_header(&bytes).map_or(bytes.len() as u64, |header| header.committed);
        let used = bytes.len().min(usize::try_from(committed).unwrap_or(usize::MAX).max(PAGE));
        let mut header = tar::Header::new_gnu();
        header.set_size(used as u64);
        header.set_mode(0o600);
        header.set_mtime(modified(&path));
        tar.append_data(&mut header, name, &bytes[..used])?;
        all += bytes.len() as u64;
        files.push(path);
    }
    let mut buffered = tar.into_inner()?.finish()?;
    buffered.flush()?;
    buffered.get_ref().sync_all()?;
    Ok((all, files))
}

/// Creates a file that is as private as recordings are.
fn create(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
}

/// Returns when a file was last modified, in seconds since 1970.
fn modified(path: &Path) -> u64 {
    let time = fs::metadata(path).and_then(|metadata| metadata.modified()).ok();
    time.and_then(|time| time.duration_since(UNIX_EPOCH).ok()).map_or(0, |since| since.as_secs())
}

/// A recording from an archive.
#[derive(Debug)]
pub(crate) struct Unfolded {
    /// The path of the archive with its name in it.
    pub(crate) path: PathBuf,
    pub(crate) header: Header,
    pub(crate) files: Files,
}

/// The files of a folded process.
#[derive(Clone, Debug)]
pub(crate) struct Files {
    /// `None`: there is only the companion's.
    pub(crate) recording: Option<Shelved>,
    pub(crate) syscalls: Option<Shelved>,
}

/// Reads an archive. Damage ends the reading: returns what came before, and a failure.
pub(crate) fn unfold(archive: &Path, shelf: &Shelf) -> (Vec<Unfolded>, Vec<Failure>) {
    let (mut found, mut failures) = (Vec::new(), Vec::new());
    if let Err(error) = read_into(archive, shelf, &mut found, &mut failures) {
        failures.push(Failure { path: archive.into(), cause: error.into() });
    }
    (found, failures)
}

fn read_into(
    archive: &Path,
    shelf: &Shelf,
    found: &mut Vec<Unfolded>,
    failures: &mut Vec<Failure>,
) -> io::Result<()> {
    // Sizes in the archive are not trusted.
    let limit = 16 * LARGEST;
    let file = File::open(archive)?;
    let all = limit.saturating_add(file.metadata()?.len().saturating_mul(RATIO));
    let left = Rc::new(Cell::new(0));
    let inner = ReadAhead::new(Decoder::new(file)?)?;
    let mut tar = tar::Archive::new(Bounded { inner, left: left.clone(), all });
    let mut entries = tar.entries()?;
    let mut bytes = Vec::new();
    loop {
        left.set(limit + PAGE as u64);
        let Some(entry) = entries.next() else { return Ok(()) };
        let mut entry = entry?;
        let name = entry.path()?.into_owned();
        let path = archive.join(&name);
        bytes.clear();
        // Entries of other types, such as sparse files, are not written by this program.
        let is_regular = entry.header().entry_type() == tar::EntryType::Regular;
        if !is_regular || entry.by_ref().take(limit + 1).read_to_end(&mut bytes)? as u64 > limit {
            return Err(io::Error::other(format!(
                "{} is no recording, or too large",
                name.display()
            )));
        }
        let is_recording = name.extension().is_some_and(|extension| extension == EXTENSION);
        // The companion's file follows the recording, if there is one.
        let is_of = |recording: &Path| !is_recording && file_of(recording) == path;
        if failures.last().is_some_and(|failure| is_of(&failure.path)) {
            continue;
        }
        if let Some(last) = found.last_mut().filter(|last| is_of(&last.path)) {
            last.files.syscalls = Some(shelf.put(&bytes));
            continue;
        }
        let header = match is_recording {
            true => parse_header(&bytes),
            false => parse_syscalls_header(&bytes).map(|header| unrecorded::header(&header)),
        };
        match header {
            Ok(header) => {
                let file = Some(shelf.put(&bytes));
                let (recording, syscalls) = if is_recording { (file, None) } else { (None, file) };
                found.push(Unfolded { path, header, files: Files { recording, syscalls } });
            }
            Err(error) => failures.push(Failure { path, cause: Cause::Format(error) }),
        }
    }
}

/// Limits how much an archive unpacks to, since names and headers can be as long as recordings, and a compressed byte
/// can unpack to thousands.
struct Bounded<R> {
    inner: R,
    /// Remaining bytes for one entry and the headers before it.
    left: Rc<Cell<u64>>,
    /// Remaining bytes for all entries.
    all: u64,
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let len = self.inner.read(bytes)?;
        let less = |left: u64| left.checked_sub(len as u64);
        let (Some(left), Some(all)) = (less(self.left.get()), less(self.all)) else {
            return Err(io::Error::other("more is packed in it than recordings need"));
        };
        self.left.set(left);
        self.all = all;
        Ok(len)
    }
}

/// Returns the path that a file had before it was folded, given that of the archive with its name.
pub(crate) fn unfolded_place(path: &Path) -> PathBuf {
    let directory = path.parent().and_then(Path::parent).unwrap_or(Path::new(""));
    directory.join(path.file_name().unwrap_or_default())
}

/// Identifies a recording.
pub(crate) fn identity(header: &Header) -> impl Eq + std::hash::Hash + use<> {
    (header.boot_id, header.pid, header.process_start, header.clock_start.ticks)
}

/// Removes recordings that also exist as files, as after an interrupted fold.
pub(crate) fn without<'h>(
    unfolded: Vec<Unfolded>,
    files: impl Iterator<Item = &'h Header>,
) -> impl Iterator<Item = Unfolded> {
    let known: HashSet<_> = files.map(identity).collect();
    unfolded.into_iter().filter(move |one| !known.contains(&identity(&one.header)))
}
