//! Room for events that threads leave behind when they end.
//!
//! What is in it stays readable until a thread that begins finds no other room. Then the thread that ended first gives all of
//! its own, so that it is known how many events go with it.

use core::mem::offset_of;
use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use chase_format::layout::{COMMITTED, ChunkHeader, EventsHead, PAGE};

use crate::lock::{Fork, Lock};
use crate::recording::{self, Lost};

/// The maximum number of chunks of a thread: each is twice as large as the one before.
pub(super) const CHUNKS: usize = 14;

/// A chunk's [`EventsHead`] after the end of its thread: readers pass over all but the first word.
#[repr(C)]
struct Left {
    lost: u64,
    /// In a thread's first chunk: events that it had written.
    written: u64,
    /// The thread's next chunk, which is twice as long; in a list of free chunks the next of those.
    next: *mut Left,
    /// In a thread's first chunk: that of the thread that ended after it.
    later: *mut Left,
}

const _: () = {
    assert!(size_of::<Left>() == size_of::<EventsHead>());
    assert!(offset_of!(Left, lost) == offset_of!(EventsHead, lost));
};

struct Rooms {
    /// First chunks of the threads that ended first and last.
    oldest: *mut Left,
    latest: *mut Left,
    /// Chunks that nobody has, by how often they were doubled. All-zero but for the head.
    free: [*mut Left; CHUNKS],
}

impl Rooms {
    const fn none() -> Self {
        Self { oldest: ptr::null_mut(), latest: ptr::null_mut(), free: [ptr::null_mut(); CHUNKS] }
    }
}

static ROOMS: Lock<Rooms> = Lock::new(Rooms::none());

/// Whether there are any: who finds none need not look.
static HAS_ANY: AtomicBool = AtomicBool::new(false);

/// Whether threads have left rooms.
pub(super) fn are_any() -> bool {
    HAS_ANY.load(Ordering::Relaxed)
}

/// A new recording has none. Called while there is one thread.
pub(super) fn renew() {
    *ROOMS.hold() = Rooms::none();
    HAS_ANY.store(false, Ordering::Relaxed);
}

/// Sees to the lock in a fork.
pub(super) fn fork(moment: Fork) {
    ROOMS.fork(moment);
}

/// A thread that has ended leaves `chunks`, in the order in which it got them, with the `written` events that are in them, or were.
/// Signals are blocked.
///
/// # Safety
/// They are in the recording that is mapped, one at least, and nobody else's.
pub(super) unsafe fn leave(chunks: impl Iterator<Item = *mut EventsHead>, written: u64) {
    let mut rooms = ROOMS.hold();
    let mut chunks = chunks.map(|chunk| chunk.cast::<Left>());
    let Some(first) = chunks.next() else { return };
    // SAFETY: the caller vouches for the chunks; those in the list were left here.
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

/// A chunk of `PAGE << number` bytes that an ended thread has left, empty, and `owner`'s from now on. Only for a first chunk, which
/// each thread is to have, events are given up. Signals are blocked.
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
    // SAFETY: free chunks are in the mapping, and nobody's.
    unsafe {
        *place = (*chunk).next;
        chunk.write(Left { lost: 0, written: 0, next: ptr::null_mut(), later: ptr::null_mut() });
        let header = header_of(chunk);
        (*header).owner = owner;
        state_of(header).store(COMMITTED, Ordering::Release);
    }
    Some(chunk.cast())
}

/// Nobody reads the events any more of the thread that ended first: its chunks are free.
fn give_up_oldest(rooms: &mut Rooms) {
    let first = rooms.oldest;
    if first.is_null() {
        return;
    }
    // SAFETY: what is in the list is in the mapping, and nobody's. Behind the head, a chunk has events alone.
    unsafe {
        rooms.oldest = (*first).later;
        // First, since who is killed in between has rather said too much than too little.
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

/// What is in front of a chunk's contents.
fn header_of(chunk: *mut Left) -> *mut ChunkHeader {
    chunk.cast::<ChunkHeader>().wrapping_sub(1)
}

/// Whether the contents may be read.
///
/// # Safety
/// The header is in the mapping.
unsafe fn state_of<'a>(header: *mut ChunkHeader) -> &'a AtomicU32 {
    // SAFETY: the caller vouches for it; it stays as long as the recording.
    unsafe { AtomicU32::from_ptr(&raw mut (*header).state) }
}
