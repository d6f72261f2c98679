//! Where frames live: segments of a few, taken from those of the process as threads need them.

use core::ptr;
use core::sync::atomic::{AtomicBool, Ordering};

use chase_format::layout::Node;

use crate::abi::{FRAME, FRAMES, FREE, Frame, MOVED, SEGMENT, Segment, ThreadHead, segment_of};
use crate::lock::{Fork, Lock};
use crate::pages;
use crate::signals::SignalsBlocked;
use crate::stubs::{exit_of_left, first_frame};

/// Segments of a process.
const SEGMENTS: usize = FRAMES * FRAME / SEGMENT;
/// Segments with frames that were set aside, before the one that has waited longest is used again though there are
/// others: 8,000 frames and their pads are what a processor can keep at hand.
const MANY_LEFT: usize = 256;

/// [`Frame::may_return`] of a frame that is set aside: a jump has left it, or so it seems.
pub(crate) const LEFT: u32 = 0;
/// [`Frame::may_return`] of one on another stack than that which goes on.
pub(crate) const ELSEWHERE: u32 = 1;
/// [`Frame::may_return`] of one on the thread's own stack, though nothing that the thread is known to have done leaves
/// frames.
pub(crate) const NOT_JUMPED: u32 = 2;

/// Whether a call has returned whose frame was set aside.
static SLICED: AtomicBool = AtomicBool::new(false);

/// Whether what is deeper on the thread's own stack than a call that runs is taken not to return.
pub(crate) fn infers() -> bool {
    !SLICED.load(Ordering::Relaxed)
}

/// A call has returned that looked left on its thread's own stack. Gives whether that is new.
pub(crate) fn stop_inferring() -> bool {
    !SLICED.swap(true, Ordering::Relaxed)
}

/// Whether a frame is set aside.
///
/// # Safety
/// The frame is below the top of its thread.
pub(crate) unsafe fn is_left(frame: *const Frame) -> bool {
    // SAFETY: the caller vouches for the frame.
    unsafe { (*frame).exit == exit_of_left() }
}

/// The segments that no thread uses. Lists are linked by `Segment::next`.
struct Pool {
    /// How many were ever used.
    used: usize,
    /// Without frames that are set aside, latest first.
    free: *mut Segment,
    /// With such, in the order in which they came.
    first_left: *mut Segment,
    last_left: *mut Segment,
    left: usize,
}

static POOL: Lock<Pool> = Lock::new(Pool {
    used: 0,
    free: ptr::null_mut(),
    first_left: ptr::null_mut(),
    last_left: ptr::null_mut(),
    left: 0,
});

/// A segment, zeroed; null if there is none. Signals are blocked.
pub(crate) fn take_segment() -> *mut Segment {
    let mut pool = POOL.hold();
    // SAFETY: what is in the lists is used by nobody, nor is what was never used.
    unsafe {
        let is_reused = infers() && pool.left >= MANY_LEFT;
        if !is_reused {
            if !pool.free.is_null() {
                let segment = pool.free;
                pool.free = (*segment).next;
                ptr::write_bytes(segment.cast::<u8>(), 0, SEGMENT);
                return segment;
            }
            if pool.used < SEGMENTS {
                let segment = first_frame() + pool.used * SEGMENT;
                pool.used += 1;
                return ptr::with_exposed_provenance_mut(segment);
            }
        }
        let segment = if infers() { pool.first_left } else { ptr::null_mut() };
        if !segment.is_null() {
            pool.first_left = (*segment).next;
            pool.left -= 1;
            ptr::write_bytes(segment.cast::<u8>(), 0, SEGMENT);
        }
        segment
    }
}

/// Takes back what a thread does not use any more: no frame is live. Signals are blocked.
pub(crate) fn give_back_segment(segment: *mut Segment) {
    if !is_real(segment) {
        return pages::give_back(segment.cast(), SEGMENT);
    }
    let mut pool = POOL.hold();
    // SAFETY: the segment is nobody's.
    unsafe {
        (*segment).owner = ptr::null_mut();
        pool.put(segment);
    }
}

impl Pool {
    /// Puts a segment into the list for it; into none if calls may return there.
    ///
    /// # Safety
    /// The segment is nobody's.
    unsafe fn put(&mut self, segment: *mut Segment) {
        // SAFETY: the caller vouches for the segment; those of the lists are nobody's either.
        unsafe {
            (*segment).next = ptr::null_mut();
            if frames_in(segment).any(|frame| is_left(frame) && (*frame).may_return != LEFT) {
                return;
            }
            if !frames_in(segment).any(|frame| is_left(frame)) {
                (*segment).next = self.free;
                self.free = segment;
                return;
            }
            if self.left == 0 {
                self.first_left = segment;
            } else {
                (*self.last_left).next = segment;
            }
            self.last_left = segment;
            self.left += 1;
        }
    }
}

/// A call has returned whose frame was set aside, by another thread than the calling one, or in a segment that was
/// given back since.
///
/// # Safety
/// The frame is one that was set aside.
pub(crate) unsafe fn returned(frame: *mut Frame) {
    let _signals = SignalsBlocked::new();
    let mut pool = POOL.hold();
    // SAFETY: the lock is held: an owner does not give the segment back meanwhile. Without one, nobody else has it.
    unsafe {
        let segment = segment_of(frame);
        let is_waiting = (*frame).may_return != LEFT;
        (*frame).may_return = LEFT;
        if (*segment).owner.is_null() && is_waiting {
            (*frame).exit = 0;
            pool.put(segment);
        }
    }
}

/// Sees to the lock in a fork. (What other threads had stays theirs in the child: who knows who goes on with their
/// coroutines.)
pub(crate) fn fork(moment: Fork) {
    POOL.fork(moment);
}

/// Where `top` is when the segment is empty.
pub(crate) fn bottom(segment: *mut Segment) -> usize {
    segment as usize + FRAME
}

/// A segment for a new thread, zeroed; null if there is no memory. When the process has no more frames, its calls are
/// counted and pass through, until there are some: it gets a place that looks full.
pub(crate) fn take_first_segment() -> *mut Segment {
    let segment = take_segment();
    if segment.is_null() { pages::allocate(SEGMENT).cast() } else { segment }
}

/// Where the top is of the thread whose first segment this is, by its frames: behind the last one that is in use.
///
/// # Safety
/// The segment and those linked behind it are the thread's.
pub(crate) unsafe fn top_of(lowest: *mut Segment) -> usize {
    if !is_real(lowest) {
        return lowest as usize + SEGMENT;
    }
    let mut top = bottom(lowest);
    let mut segment = lowest;
    while !segment.is_null() {
        // SAFETY: the caller vouches for the segments, whose frames are initialised.
        unsafe {
            let in_use = |frame: &*mut Frame| (**frame).sp.load(Ordering::Relaxed) != FREE;
            top =
                frames_in(segment).filter(in_use).last().map_or(top, |last| last as usize + FRAME);
            segment = (*segment).next;
        }
    }
    top
}

/// Whether a segment has pads.
fn is_real(segment: *const Segment) -> bool {
    segment.addr().wrapping_sub(first_frame()) < FRAMES * FRAME
}

/// Makes the first segment of a thread, in zeroed memory.
///
/// # Safety
/// `segment` is memory of ours that nobody uses.
pub(crate) unsafe fn first_segment(segment: *mut Segment, owner: *mut ThreadHead, root: *mut Node) {
    if !is_real(segment) {
        // SAFETY: the caller vouches for the memory; the last frame's place is what the call path looks at.
        unsafe {
            (*((segment as usize + SEGMENT - FRAME) as *mut Frame)).node = root;
            (*segment).owner = owner;
            (*owner).top.store(segment as usize + SEGMENT, Ordering::Relaxed);
        }
        return;
    }
    // SAFETY: the caller vouches for the memory.
    unsafe {
        (*segment).owner = owner;
        (*segment).previous = ptr::null_mut();
        (*segment).node = root;
        (*segment).sp.store(usize::MAX, Ordering::Relaxed);
        (*owner).top.store(bottom(segment), Ordering::Relaxed);
    }
}

/// The first segment of the thread whose top is there.
///
/// # Safety
/// It is a thread's, with a segment.
pub(crate) unsafe fn lowest_segment(top: usize) -> *mut Segment {
    let mut segment = segment_of((top - FRAME) as *const Frame);
    // SAFETY: links lead to the first segment; segments live as long as the thread.
    unsafe {
        while !(*segment).previous.is_null() {
            segment = (*segment).previous;
        }
    }
    segment
}

/// The frames of a segment.
pub(crate) fn frames_in(segment: *mut Segment) -> impl Iterator<Item = *mut Frame> {
    (1..SEGMENT / FRAME).map(move |i| (segment as usize + i * FRAME) as *mut Frame)
}

/// Whether no frame of a segment is live.
pub(crate) fn is_unused(segment: *mut Segment) -> bool {
    // SAFETY: the frames of a segment are initialised, zero at first.
    frames_in(segment)
        .all(|frame| unsafe { is_left(frame) || (*frame).sp.load(Ordering::Acquire) <= MOVED })
}
