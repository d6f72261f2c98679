//! Chunks of events of threads that have ended.
//!
//! Their events stay readable until a new thread finds no other space. Then all chunks of the thread that ended first
//! are freed together, so that the number of lost events is known.

use core::mem::offset_of;
use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use chase_format::layout::{COMMITTED, ChunkHeader, EventsHead, PAGE};

use crate::lock::{Fork, Lock};
use crate::recording::{self, Lost};

/// The maximum number of chunks of a thread: each is twice as large as the one before.
pub(super) const CHUNKS: usize = 14;

/// A chunk's [`EventsHead`] after the end of its thread. Readers ignore all but the first word.
#[repr(C)]
struct Left {
    lost: u64,
    /// In a thread's first chunk: how many events it had written.
    written: u64,
    /// The thread's next chunk, which is twice as long; in a list of free chunks, the next one.
    next: *mut Left,
    /// In a thread's first chunk: the first chunk of the thread that ended next.
    later: *mut Left,
}

const _: () = {
    assert!(size_of::<Left>() == size_of::<EventsHead>());
    assert!(offset_of!(Left, lost) == offset_of!(EventsHead, lost));
};

struct Rooms {
    /// The first chunks of the threads that ended first and last.
    oldest: *mut Left,
    latest: *mut Left,
    /// Free chunks: those of `PAGE << n` bytes at index n. All-zero except for the head.
    free: [*mut Left; CHUNKS],
}

impl Rooms {
    const fn none() -> Self {
        Self { oldest: ptr::null_mut(), latest: ptr::null_mut(), free: [ptr::null_mut(); CHUNKS] }
    }
}

static ROOMS: Lock<Rooms> = Lock::new(Rooms::none());

/// Whether there are any chunks; read without the lock.
static HAS_ANY: AtomicBool = AtomicBool::new(false);

/// Returns whether there are any chunks of ended threads.
pub(super) fn are_any() -> bool {
    HAS_ANY.load(Ordering::Relaxed)
}

/// Forgets all chunks, for a new recording. Called while there is one thread.
pub(super) fn renew() {
    *ROOMS.hold() = Rooms::none();
    HAS_ANY.store(false, Ordering::Relaxed);
}

/// Handles the lock in a fork.
pub(super) fn fork(moment: Fork) {
    ROOMS.fork(moment);
}

/// Adds the `chunks` of an ended thread, in the order in which it got them. `written` is the number of events that it
/// wrote, including overwritten ones. Signals are blocked.
///
/// # Safety
/// The chunks are in the mapped recording, and no other thread uses them.
pub(super) unsafe fn leave(chunks: impl Iterator<Item = *mut EventsHead>, written: u64) {
    let mut rooms = ROOMS.hold();
    let mut chunks = chunks.map(|chunk| chunk.cast::<Left>());
    let Some(first) = chunks.next() else { return };
    // SAFETY: the caller vouches for the chunks; those in the list were added by this function.
    unsafe {
        (*first).written = written;
        (*first).later = ptr::null_mut();
        let mut last = first;
        for chunk in chunks {
            (*last).next = chunk;
            last = chunk;
        }
        (*last).next = ptr::null_mut();
        if rooms.oldest.is_null() {
            rooms.oldest = first;
        } else {
            (*rooms.latest).later = first;
        }
    }
    rooms.latest = first;
    HAS_ANY.store(true, Ordering::Relaxed);
}

/// Returns an empty chunk of `PAGE << number` bytes of an ended thread, now owned by `owner`. Events are given up only
/// for a first chunk, so that each thread gets one. Signals are blocked.
pub(super) fn take(number: usize, owner: u32) -> Option<*mut EventsHead> {
    let mut rooms = ROOMS.hold();
    if number == 0 && rooms.free[0].is_null() {
        give_up_oldest(&mut rooms);
    }
    let place = rooms.free.get_mut(number)?;
    let chunk = *place;
    if chunk.is_null() {
        return None;
    }
    // SAFETY: free chunks are in the mapping, and nobody uses them.
    unsafe {
        *place = (*chunk).next;
        chunk.write(Left { lost: 0, written: 0, next: ptr::null_mut(), later: ptr::null_mut() });
        let header = header_of(chunk);
        (*header).owner = owner;
        state_of(header).store(COMMITTED, Ordering::Release);
    }
    Some(chunk.cast())
}

/// Frees the chunks of the thread that ended first, and counts its events as lost.
fn give_up_oldest(rooms: &mut Rooms) {
    let first = rooms.oldest;
    if first.is_null() {
        return;
    }
    // SAFETY: chunks in the list are in the mapping, and nobody uses them. Behind the head, a chunk has only events.
    unsafe {
        rooms.oldest = (*first).later;
        // Counted first: if the process is killed in between, too many are reported rather than too few.
        recording::add_unseen(Lost::EndedEvent, (*first).written + (*first).lost);
        let mut chunk = first;
        for (number, free) in rooms.free.iter_mut().enumerate() {
            if chunk.is_null() {
                break;
            }
            let next = (*chunk).next;
            state_of(header_of(chunk)).store(0, Ordering::Release);
            let contents = (PAGE << number) - size_of::<ChunkHeader>();
            ptr::write_bytes(chunk.cast::<u8>(), 0, contents);
            (*chunk).next = *free;
            *free = chunk;
            chunk = next;
        }
    }
}

/// Returns the header in front of a chunk's contents.
fn header_of(chunk: *mut Left) -> *mut ChunkHeader {
    chunk.cast::<ChunkHeader>().wrapping_sub(1)
}

/// Returns the word that says whether the contents may be read.
///
/// # Safety
/// The header is in the mapping.
unsafe fn state_of<'a>(header: *mut ChunkHeader) -> &'a AtomicU32 {
    // SAFETY: the caller vouches for the header, which stays mapped as long as the recording.
    unsafe { AtomicU32::from_ptr(&raw mut (*header).state) }
}
