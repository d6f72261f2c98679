//! The memory of frames: segments, which threads take from a pool of the process as they need them.

use core::ptr;
use core::sync::atomic::{AtomicBool, Ordering};

use chase_format::layout::Node;

use crate::abi::{FRAME, FRAMES, FREE, Frame, MOVED, SEGMENT, Segment, ThreadHead, segment_of};
use crate::lock::{Fork, Lock};
use crate::pages;
use crate::signals::SignalsBlocked;
use crate::stubs::{exit_of_set_aside, first_frame};

/// The number of segments in a process.
const SEGMENTS: usize = FRAMES * FRAME / SEGMENT;
/// How many segments with frames that were set aside may wait before the oldest is reused, though there are others:
/// 8,000 frames and their pads are what a processor can keep in its caches.
const MANY_SET_ASIDE: usize = 256;

/// [`Frame::may_return`] of a frame that is set aside: its call was abandoned by a jump, or so it seems.
pub(crate) const ABANDONED: u32 = 0;
/// [`Frame::may_return`] of a frame on another stack than the code that goes on.
pub(crate) const ELSEWHERE: u32 = 1;
/// [`Frame::may_return`] of a frame on the thread's own stack that seems abandoned, though the thread is not known to
/// have done anything that abandons frames.
pub(crate) const WITHOUT_JUMP: u32 = 2;

/// Whether a call has returned that seemed abandoned on its thread's own stack: stacks are sliced.
static STACKS_ARE_SLICED: AtomicBool = AtomicBool::new(false);

/// Whether calls deeper on the thread's own stack than a running call are assumed never to return.
pub(crate) fn deeper_calls_are_over() -> bool {
    !STACKS_ARE_SLICED.load(Ordering::Relaxed)
}

/// Ends that assumption, since such a call has returned. Returns whether this is the first time.
pub(crate) fn stop_assuming_over() -> bool {
    !STACKS_ARE_SLICED.swap(true, Ordering::Relaxed)
}

/// Whether a frame is set aside.
///
/// # Safety
/// The frame is below its thread's top.
pub(crate) unsafe fn is_set_aside(frame: *const Frame) -> bool {
    // SAFETY: the caller vouches for the frame.
    unsafe { (*frame).exit == exit_of_set_aside() }
}

/// The segments that no thread uses, in lists linked by `Segment::next`.
struct Pool {
    /// How many were ever used.
    used: usize,
    /// Those without frames that are set aside, latest first.
    free: *mut Segment,
    /// Those with such frames, oldest first.
    first_set_aside: *mut Segment,
    last_set_aside: *mut Segment,
    set_aside: usize,
}

static POOL: Lock<Pool> = Lock::new(Pool {
    used: 0,
    free: ptr::null_mut(),
    first_set_aside: ptr::null_mut(),
    last_set_aside: ptr::null_mut(),
    set_aside: 0,
});

/// Takes a segment, zeroed; null if there is none. Signals are blocked.
pub(crate) fn take_segment() -> *mut Segment {
    let mut pool = POOL.hold();
    // SAFETY: nobody uses the segments in the lists, or those that were never used.
    unsafe {
        let is_reused = deeper_calls_are_over() && pool.set_aside >= MANY_SET_ASIDE;
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
        let segment = if deeper_calls_are_over() { pool.first_set_aside } else { ptr::null_mut() };
        if !segment.is_null() {
            pool.first_set_aside = (*segment).next;
            pool.set_aside -= 1;
            ptr::write_bytes(segment.cast::<u8>(), 0, SEGMENT);
        }
        segment
    }
}

/// Gives back a segment in which no frame is live. Signals are blocked.
pub(crate) fn give_back_segment(segment: *mut Segment) {
    if !is_real(segment) {
        return pages::give_back(segment.cast(), SEGMENT);
    }
    let mut pool = POOL.hold();
    // SAFETY: nobody uses the segment.
    unsafe {
        (*segment).owner = ptr::null_mut();
        pool.put(segment);
    }
}

impl Pool {
    /// Adds a segment to the list where it belongs; to none if calls may return to its frames.
    ///
    /// # Safety
    /// Nobody uses the segment.
    unsafe fn put(&mut self, segment: *mut Segment) {
        // SAFETY: the caller vouches for the segment; nobody uses those in the lists either.
        unsafe {
            (*segment).next = ptr::null_mut();
            let set_aside = frames_in(segment).filter(|&frame| is_set_aside(frame));
            match set_aside.map(|frame| (*frame).may_return != ABANDONED).max() {
                Some(true) => return,
                Some(false) => {}
                None => {
                    (*segment).next = self.free;
                    self.free = segment;
                    return;
                }
            }
            if self.set_aside == 0 {
                self.first_set_aside = segment;
            } else {
                (*self.last_set_aside).next = segment;
            }
            self.last_set_aside = segment;
            self.set_aside += 1;
        }
    }
}

/// Handles the return of a call whose frame was set aside, on another thread than the frame's, or in a segment that
/// was given back since.
///
/// # Safety
/// The frame was set aside.
pub(crate) unsafe fn return_in_other_segment(frame: *mut Frame) {
    let _signals = SignalsBlocked::new();
    let mut pool = POOL.hold();
    // SAFETY: the lock is held, so an owner doesn't give the segment back meanwhile. Without an owner, nobody else
    // uses it.
    unsafe {
        let segment = segment_of(frame);
        let is_waiting = (*frame).may_return != ABANDONED;
        (*frame).may_return = ABANDONED;
        if (*segment).owner.is_null() && is_waiting {
            (*frame).exit = 0;
            pool.put(segment);
        }
    }
}

/// Handles the lock in a fork. (Other threads' segments stay theirs in the child, since their coroutines may go on
/// there.)
pub(crate) fn fork(moment: Fork) {
    POOL.fork(moment);
}

/// Returns the `top` of an empty segment.
pub(crate) fn bottom(segment: *mut Segment) -> usize {
    segment as usize + FRAME
}

/// Takes a segment for a new thread, zeroed; null if there is no memory. If the process has no segments left, it is
/// one that looks full: the thread's calls are counted and run without frames until there are segments again.
pub(crate) fn take_first_segment() -> *mut Segment {
    let segment = take_segment();
    if segment.is_null() { pages::allocate(SEGMENT).cast() } else { segment }
}

/// Computes the top of the thread whose first segment this is, from its frames: behind the last one in use.
///
/// # Safety
/// The segment and those linked to it are the thread's.
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

/// Whether a segment's frames have pads.
fn is_real(segment: *const Segment) -> bool {
    segment.addr().wrapping_sub(first_frame()) < FRAMES * FRAME
}

/// Makes `segment` the first of a thread.
///
/// # Safety
/// `segment` is zeroed memory of ours that nobody uses.
pub(crate) unsafe fn first_segment(segment: *mut Segment, owner: *mut ThreadHead, root: *mut Node) {
    if !is_real(segment) {
        // SAFETY: the caller vouches for the memory. The call path reads the caller in the last frame.
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

/// Returns the first segment of the thread with this top.
///
/// # Safety
/// It is the top of a thread that has a segment.
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

/// Returns the frames of a segment.
pub(crate) fn frames_in(segment: *mut Segment) -> impl Iterator<Item = *mut Frame> {
    (1..SEGMENT / FRAME).map(move |i| (segment as usize + i * FRAME) as *mut Frame)
}

/// Whether no frame of a segment is live.
pub(crate) fn is_unused(segment: *mut Segment) -> bool {
    // SAFETY: the frames of a segment are initialised, zero at first.
    frames_in(segment)
        .all(|frame| unsafe { is_set_aside(frame) || (*frame).sp.load(Ordering::Acquire) <= MOVED })
}
