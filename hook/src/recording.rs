//! The recording of this process: the file, its mapping, and how space is appended.
//!
//! The file is mapped at an address with room behind it, so that file and mapping can grow, and no descriptor is kept
//! open. Each part is populated (`MADV_POPULATE_WRITE`) before it is used, which allocates its blocks: a full disk or
//! an exceeded quota is an error here, and never a signal in the application. Where the kernel doesn't support that
//! (before 5.14), a fixed part is allocated at the start, and the recording can't grow. The mapping is small at
//! first, since it counts where the application limits or locks its memory.

mod cut_off;
mod length;
mod lost;
mod place;
mod records;

use core::ops::Range;
use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};

use chase_format::layout::{
    ChunkKind, Header, NONE, OriginRecord, PAGE, STOP_CONFINED, STOP_LIMIT, STOP_NO_MEMORY,
    STOP_NO_SPACE, THREAD_LIVE, ThreadRecord,
};
use chase_format::writer::{Chunk, Writer};

pub(crate) use self::cut_off::end_if_gone;
use self::length::lengthen;
pub(crate) use self::length::{lengthen_ahead, trim};
pub(crate) use self::lost::{Lost, add_unseen, times_unseen, unseen};
pub(crate) use self::records::Records;
use crate::abi::BASE;
use crate::lock::{Fork, Lock};
use crate::signals::SignalsBlocked;
use crate::sys::{self, Errno};
use crate::{clock, fork_word};
use chase_logic::text::Text;

/// The maximum length of a recording in bytes.
pub(crate) const LARGEST: usize = 4 << 30;
/// The initial length of the file and its mapping. The file is sparse; its length is set to what is used at the end.
const FIRST_LENGTH: usize = 4 << 20;
/// The maximum length that the user allows.
static LIMIT: AtomicUsize = AtomicUsize::new(LARGEST);
/// How much is populated at first, and at least each further time.
const STEP: usize = 64 << 10;
/// (A call, or the start of a thread, waits while a step is populated.)
const LARGEST_STEP: usize = 256 << 10;
/// A recording of this size is likely to grow further, so it is populated ahead of need.
const MANY: usize = 512 << 10;
/// How much is allocated at the start where nothing can be populated later.
const FIXED: usize = FIRST_LENGTH;
/// The mapping may take one part in so many of the address space limit.
const ADDRESS_SPACE_SHARE: u64 = 8;

/// How many chunks of thread records have their threads' names read at the end.
const NAMED_CHUNKS: usize = 16;
type Threads = Records<ThreadRecord, PAGE>;

struct State {
    writer: Writer,
    /// The absolute path of the file.
    path: Text<4096>,
    identity: (u64, u64),
    /// The length of the mapping.
    length: usize,
    /// The length of the file: that, unless it was lengthened ahead.
    file_length: usize,
    threads: Threads,
    thread_count: u32,
    /// The first chunks of thread records.
    first_threads: [Option<Chunk>; NAMED_CHUNKS],
    origins: Records<OriginRecord, { 4 * PAGE }>,
}

static RECORDING: Lock<State> = Lock::new(State {
    writer: Writer::unopened(),
    path: Text::new(),
    identity: (0, 0),
    length: 0,
    file_length: 0,
    threads: Records::NONE,
    thread_count: 0,
    first_threads: [None; NAMED_CHUNKS],
    origins: Records::NONE,
});

/// Whether there is a recording.
static OPEN: AtomicBool = AtomicBool::new(false);
/// Whether it can't grow any more.
static STOPPED: AtomicBool = AtomicBool::new(false);

/// Whether a thread is populating pages ahead of need.
static IS_AHEAD: AtomicBool = AtomicBool::new(false);

/// Returns the start of the mapping.
pub(crate) fn base() -> *mut u8 {
    ptr::with_exposed_provenance_mut(BASE.load(Ordering::Relaxed))
}

/// Returns the header; only valid while the recording is open.
pub(crate) fn header() -> *mut Header {
    base().cast()
}

/// See [`Header::condition_words`]; known soon after the first recording is created.
static CONDITION_WORDS: AtomicU64 = AtomicU64::new(0);

pub(crate) fn condition_words() -> u64 {
    CONDITION_WORDS.load(Ordering::Relaxed)
}

pub(crate) fn set_condition_words(offset: u64) {
    CONDITION_WORDS.store(offset, Ordering::Relaxed);
    if is_open() {
        // SAFETY: the recording is mapped, and nothing else writes this field.
        unsafe { (*header()).condition_words = offset };
    }
}

/// Whether an address is in the mapping.
pub(crate) fn holds(address: usize) -> bool {
    address.wrapping_sub(base() as usize) < LARGEST
}

/// Whether there is a recording.
pub(crate) fn is_open() -> bool {
    OPEN.load(Ordering::Acquire)
}

/// Whether the recording can't grow any more. The nodes in it go on counting.
pub(crate) fn stopped() -> bool {
    STOPPED.load(Ordering::Relaxed)
}

/// Why there is no recording.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Refused {
    pub(crate) doing: &'static str,
    pub(crate) errno: Errno,
}

fn refused(doing: &'static str) -> impl FnOnce(Errno) -> Refused {
    move |errno| Refused { doing, errno }
}

/// Limits the length of recordings, in bytes.
pub(crate) fn limit_to(bytes: u64) {
    LIMIT.store(usize::try_from(bytes).unwrap_or(LARGEST).min(LARGEST), Ordering::Relaxed);
}

/// The maximum length of the file.
fn file_limit() -> usize {
    let limit = usize::try_from(sys::limit(libc::RLIMIT_FSIZE)).unwrap_or(usize::MAX);
    limit.min(LIMIT.load(Ordering::Relaxed))
}

/// Creates the file `path` and maps it. In a fork's child, replaces the mapping of the parent's recording. Called
/// while there is only one thread.
pub(crate) fn create(path: &Text<4096>, header: &Header) -> Result<(), Refused> {
    let file_limit = file_limit();
    if file_limit < 2 * STEP {
        return Err(Refused { doing: "the file size limit is too small", errno: libc::EFBIG });
    }
    let flags = libc::O_RDWR | libc::O_CREAT | libc::O_EXCL;
    let fd =
        sys::open(path.as_c_str(), flags, 0o600).map_err(refused("can't create the recording"))?;
    let result = map_new(path, fd, file_limit, header);
    sys::close(fd);
    if result.is_err() {
        sys::unlink(path.as_c_str());
    }
    result
}

fn map_new(path: &Text<4096>, fd: i32, file_limit: usize, header: &Header) -> Result<(), Refused> {
    let address_space = sys::limit(libc::RLIMIT_AS) / ADDRESS_SPACE_SHARE;
    let address_space = usize::try_from(address_space).unwrap_or(usize::MAX);
    let length = FIRST_LENGTH.min(file_limit & !(PAGE - 1)).min(address_space & !(PAGE - 1));
    // Signals are blocked, or there is only one thread.
    let state = &mut *RECORDING.hold();
    let (old, old_length) = (base(), state.length);
    // Btrfs allocates space again when a page is rewritten, unless the file is set to be overwritten in place (Linux 6.17). Otherwise, on
    // a full disk, a thread that counts a call would be killed.
    if !sys::has_seccomp_filter() {
        sys::keep_in_place(fd);
    }
    sys::ftruncate(fd, length).map_err(refused("can't size the recording"))?;
    let place = if old.is_null() { place::first() } else { place::beneath(old as usize) };
    let base = map_with_room(place, fd, length).map_err(refused("can't map the recording"))?;
    // For a fault in the middle of a long sparse file, the kernel would read ahead around it: perhaps megabytes of
    // zeros.
    let _ = sys::advise(base, length, libc::MADV_RANDOM);
    let mut room = STEP.min(length);
    // Writing the pages first takes one system call, instead of a fault for each.
    let populated =
        sys::write_zeros(fd, room).and_then(|()| sys::advise(base, room, sys::MADV_POPULATE_WRITE));
    if let Err(errno) = populated {
        let fixed = FIXED.min(length);
        let allocated = if errno == libc::EINVAL { sys::fallocate(fd, fixed) } else { Err(errno) };
        if let Err(errno) = allocated {
            sys::unmap(base, length);
            return Err(Refused { doing: "no space for the recording", errno });
        }
        room = fixed;
    }
    forget_parents(old_length);
    BASE.store(base as usize, Ordering::Relaxed);
    state.path = *path;
    state.identity = sys::file_identity(fd).unwrap_or_default();
    (state.length, state.file_length) = (length, length);
    (state.threads, state.thread_count, state.origins) = (Records::NONE, 0, Records::NONE);
    state.first_threads = [None; NAMED_CHUNKS];
    // SAFETY: the first `room` bytes of the mapping are populated, zero and ours alone.
    state.writer = unsafe { Writer::begin(base, room, header) };
    STOPPED.store(false, Ordering::Relaxed);
    IS_AHEAD.store(false, Ordering::Relaxed);
    OPEN.store(true, Ordering::Release);
    Ok(())
}

/// Replaces the parent's recording by zeros that nobody else sees, for whatever still refers to it. (If the program
/// has mapped something else there, leaves it alone.)
fn forget_parents(length: usize) {
    if length > 0 && !cut_off::is_gone() {
        sys::map_anonymous_at(base(), length);
    }
}

/// Maps the file at `place`, or else where it can grow.
fn map_with_room(place: usize, fd: i32, len: usize) -> Result<*mut u8, Errno> {
    let map_at = |place| sys::map_file(ptr::without_provenance_mut(place), fd, len);
    let base = map_at(place)?;
    if base as usize == place {
        return Ok(base);
    }
    let Some(other) = place::other() else { return Ok(base) };
    sys::unmap(base, len);
    map_at(other)
}

/// Appends a populated chunk of `len` bytes. If there is no room, returns `None`, and stops the recording. Signals
/// are blocked.
pub(crate) fn chunk(kind: ChunkKind, owner: u32, len: usize) -> Option<Chunk> {
    let (chunk, ahead) = {
        let state = &mut *RECORDING.hold();
        (append(state, kind, owner, len), room_ahead(state))
    };
    if let Some(ahead) = ahead {
        make_room_ahead(ahead);
    }
    chunk
}

/// Like [`chunk`], but also returns `None` if it would have to wait for other threads.
pub(crate) fn chunk_at_once(kind: ChunkKind, owner: u32, len: usize) -> Option<Chunk> {
    let state = &mut *RECORDING.try_hold()?;
    append(state, kind, owner, len)
}

/// Returns the range to populate ahead of need, if little room is left. Only one thread at a time gets it.
fn room_ahead(state: &State) -> Option<Range<usize>> {
    let room = state.writer.room();
    let is_short = room - state.writer.committed() < LARGEST_STEP / 2;
    let ahead = room..room + LARGEST_STEP;
    let is_wanted =
        is_open() && !stopped() && room >= MANY && is_short && ahead.end <= state.length;
    (is_wanted && !cut_off::is_gone() && !IS_AHEAD.swap(true, Ordering::Relaxed)).then_some(ahead)
}

/// Populates a range without holding the lock, so that no other thread has to wait. (The recording may end meanwhile,
/// or another thread may populate the same range: both are harmless.)
fn make_room_ahead(ahead: Range<usize>) {
    let len = ahead.len();
    let populated = sys::advise(base().wrapping_add(ahead.start), len, sys::MADV_POPULATE_WRITE);
    let state = &mut *RECORDING.hold();
    if populated.is_ok() && state.writer.room() == ahead.start && ahead.end <= state.length {
        // SAFETY: the part behind the old room is populated now.
        unsafe { state.writer.set_room(ahead.end) };
    }
    IS_AHEAD.store(false, Ordering::Relaxed);
}

fn append(state: &mut State, kind: ChunkKind, owner: u32, len: usize) -> Option<Chunk> {
    // A fork's child that has not been noticed yet must not append to its parent's file.
    if stopped() || !is_open() || !fork_word::is_ours() {
        return None;
    }
    if cut_off::is_gone() {
        cut_off::stop(state);
        return None;
    }
    while state.writer.room() - state.writer.committed() < len {
        if let Err((reason, errno)) = make_room(state) {
            // (A child that uses this memory may not make the system calls; its parent goes on.)
            if !sys::is_confined_here() {
                stop(reason, errno);
            }
            return None;
        }
    }
    state.writer.chunk(kind, owner, len)
}

fn make_room(state: &mut State) -> Result<(), (u32, Errno)> {
    let room = state.writer.room();
    let step = (room / 2).clamp(STEP, LARGEST_STEP) & !(PAGE - 1);
    let wanted = (room + step).min(LARGEST);
    if wanted <= room {
        return Err((STOP_LIMIT, 0));
    }
    if wanted > state.length {
        lengthen(state, wanted)?;
    }
    sys::advise(base().wrapping_add(room), wanted - room, sys::MADV_POPULATE_WRITE).map_err(
        |errno| {
            // EFAULT: a write would have raised SIGBUS for lack of space.
            let reason = if errno == libc::EFAULT { STOP_NO_SPACE } else { STOP_NO_MEMORY };
            (reason, if errno == libc::EFAULT { libc::ENOSPC } else { errno })
        },
    )?;
    // SAFETY: the part behind the old room is populated now.
    unsafe { state.writer.set_room(wanted) };
    note_latest();
    Ok(())
}

fn open_again(state: &State) -> Result<i32, Errno> {
    let fd = sys::open(state.path.as_c_str(), libc::O_RDWR | libc::O_NOFOLLOW, 0)?;
    if sys::file_identity(fd) == Some(state.identity) {
        return Ok(fd);
    }
    sys::close(fd);
    Err(libc::ESTALE)
}

fn stop(reason: u32, errno: Errno) {
    STOPPED.store(true, Ordering::Relaxed);
    let header = header();
    // SAFETY: the header is in the first page of the mapping.
    unsafe {
        (*header).stop_errno = errno as u32;
        (*header).stop_ticks = clock::now();
        (*header).stop_reason = reason;
    }
}

/// Stores a current pair of clocks in the header.
pub(crate) fn note_latest() {
    if is_open() {
        // SAFETY: the header is in the first page of the mapping.
        unsafe { (*header()).clock_latest = clock::pair() };
    }
}

/// Changes when the recording has ended.
pub(crate) fn set_end(ticks: u64) {
    if is_open() && !cut_off::is_gone() {
        // SAFETY: the header is in the first page of the mapping.
        unsafe { (*header()).end_ticks = ticks };
    }
}

/// Stops all system calls before the process gives up the right to some of them: what is not in the recording yet
/// will not be recorded. Signals are blocked.
pub(crate) fn confine() {
    // With this held, no thread is making room.
    let _held = RECORDING.hold();
    if !sys::confine() {
        stop(STOP_CONFINED, 0);
    }
}

/// Returns an empty thread record and its number; `None` if there is no room. Signals are blocked.
pub(crate) fn thread_record() -> Option<(*mut ThreadRecord, u32)> {
    let state = &mut *RECORDING.hold();
    let mut threads = state.threads;
    let record = threads.next(|| {
        let chunk = append(state, ChunkKind::Threads, NONE, PAGE)?;
        if let Some(free) = state.first_threads.iter_mut().find(|place| place.is_none()) {
            *free = Some(chunk);
        }
        Some(chunk)
    })?;
    state.threads = threads;
    let index = state.thread_count;
    state.thread_count += 1;
    Some((record, index))
}

/// At the process's end: stores the names of threads that still run. Many are named after their start, by themselves
/// or by others, in ways that can't be observed. Reading a name takes some microseconds, so only those of the first
/// threads are read.
pub(crate) fn note_names() {
    let _signals = SignalsBlocked::new();
    let state = &mut *RECORDING.hold();
    if state.thread_count < 2 {
        return;
    }
    for chunk in state.first_threads.iter().flatten() {
        let records = chunk.contents().cast::<ThreadRecord>();
        for record in (0..Threads::PER_CHUNK).map(|i| records.wrapping_add(i)) {
            // SAFETY: the records are in the mapping. A thread that ends meanwhile writes the
            // same name.
            unsafe {
                let state = AtomicU32::from_ptr(&raw mut (*record).state);
                if state.load(Ordering::Acquire) == THREAD_LIVE
                    && let Some(name) = sys::name_of_thread((*record).tid)
                {
                    (*record).name = name;
                }
            }
        }
    }
}

/// Returns an empty record for what was observed of a thread's creation; `None` if there is no room. Signals are
/// blocked.
pub(crate) fn origin_record() -> Option<*mut OriginRecord> {
    let state = &mut *RECORDING.hold();
    let mut origins = state.origins;
    let record = origins.next(|| append(state, ChunkKind::Origins, NONE, 4 * PAGE));
    state.origins = origins;
    record
}

/// Appends a chunk that holds `contents`; returns false if there is no room. Signals are blocked.
pub(crate) fn write_chunk(kind: ChunkKind, contents: &[u8]) -> bool {
    write(kind, NONE, contents, contents.len()).is_some()
}

/// Appends a chunk of `owner` that holds `contents`, which are `count` entries; returns `None` if there is no room. Signals
/// are blocked.
pub(crate) fn write(kind: ChunkKind, owner: u32, contents: &[u8], count: usize) -> Option<Chunk> {
    let chunk = chunk(kind, owner, Writer::chunk_len(contents.len()))?;
    // SAFETY: the chunk has room for the contents, and nobody reads it yet.
    unsafe { ptr::copy_nonoverlapping(contents.as_ptr(), chunk.contents(), contents.len()) };
    chunk.commit(count);
    Some(chunk)
}

/// Handles the lock in a fork.
pub(crate) fn fork(moment: Fork) {
    RECORDING.fork(moment);
}

/// Closes the recording in a fork's child that gets none. What still refers to the parent's recording must not change
/// it.
pub(crate) fn close() {
    OPEN.store(false, Ordering::Relaxed);
    forget_parents(RECORDING.hold().length);
}
