//! Where frames live: segments of a few, taken from those of the process as a thread needs them.

use core::cell::UnsafeCell;
use core::ptr;
use core::sync::atomic::Ordering;

use chase_format::layout::Node;

use super::left::{LEFT, NOT_JUMPED, infers};
use super::{FRAME, FREE, Frame, MOVED, SEGMENT, Segment, is_left, segment_of};
use crate::arch::{FRAMES, first_frame};
use crate::lock::Lock;
use crate::pages;
use crate::sampling;
use crate::signals::SignalsBlocked;
use crate::thread::Thread;

/// Segments of a process.
const SEGMENTS: usize = FRAMES * FRAME / SEGMENT;
/// Segments with frames that were set aside, before the one that has waited longest is used again though there are
/// others: 8,000 frames and their pads are what a processor can keep at hand.
const MANY_LEFT: usize = 256;

/// The segments that no thread uses. Lists are linked by `Segment::next`.
struct Pool {
    lock: Lock,
    state: UnsafeCell<State>,
}

struct State {
    /// How many were ever used.
    used: usize,
    /// Without frames that are set aside, latest first.
    free: *mut Segment,
    /// With such, in the order in which they came.
    first_left: *mut Segment,
    last_left: *mut Segment,
    left: usize,
}

// SAFETY: `state` is touched only by who holds `lock`.
unsafe impl Sync for Pool {}
static POOL: Pool = Pool {
    lock: Lock::new(),
    state: UnsafeCell::new(State {
        used: 0,
        free: ptr::null_mut(),
        first_left: ptr::null_mut(),
        last_left: ptr::null_mut(),
        left: 0,
    }),
};

/// A segment, zeroed; null if there is none. Signals are blocked.
pub(crate) fn take_segment() -> *mut Segment {
    let _held = POOL.lock.hold();
    // SAFETY: the lock is held; what is in the lists is used by nobody, nor is what was never used.
    unsafe {
        let state = &mut *POOL.state.get();
        let is_reused = infers() && state.left >= MANY_LEFT;
        if !is_reused {
            if !state.free.is_null() {
                let segment = state.free;
                state.free = (*segment).next;
                ptr::write_bytes(segment.cast::<u8>(), 0, SEGMENT);
                return segment;
            }
            if state.used < SEGMENTS {
                let segment = first_frame() + state.used * SEGMENT;
                state.used += 1;
                return ptr::with_exposed_provenance_mut(segment);
            }
        }
        let segment = if infers() { state.first_left } else { ptr::null_mut() };
        if !segment.is_null() {
            state.first_left = (*segment).next;
            state.left -= 1;
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
    let _held = POOL.lock.hold();
    // SAFETY: the lock is held, and the segment is nobody's.
    unsafe {
        (*segment).owner = ptr::null_mut();
        (*POOL.state.get()).put(segment);
    }
}

impl State {
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
pub(super) unsafe fn returned(frame: *mut Frame) {
    let _signals = SignalsBlocked::new();
    let _held = POOL.lock.hold();
    // SAFETY: the lock is held: an owner does not give the segment back meanwhile. Without one, nobody else has it.
    unsafe {
        let segment = segment_of(frame);
        let is_waiting = (*frame).may_return != LEFT;
        (*frame).may_return = LEFT;
        if (*segment).owner.is_null() && is_waiting {
            (*frame).exit = 0;
            (*POOL.state.get()).put(segment);
        }
    }
}

/// Before a fork, in the forking thread: nobody else is in the middle of a change.
pub(crate) fn before_fork() {
    POOL.lock.acquire();
}

/// After a fork, in the parent.
pub(crate) fn after_fork_in_parent() {
    POOL.lock.release();
}

/// After a fork, in the child. (What other threads had stays theirs: who knows who goes on with their coroutines.)
pub(crate) fn after_fork_in_child() {
    POOL.lock.reset();
}

/// Where `top` is when the segment is empty.
fn bottom(segment: *mut Segment) -> usize {
    segment as usize + FRAME
}

/// A segment for a new thread, zeroed; null if there is no memory. When the process has no more frames, its calls are
/// counted and pass through, until there are some: it gets a place that looks full.
pub(crate) fn take_first_segment() -> *mut Segment {
    let segment = take_segment();
    if segment.is_null() { pages::take(SEGMENT).cast() } else { segment }
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
pub(crate) unsafe fn first_segment(segment: *mut Segment, owner: *mut Thread, root: *mut Node) {
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

impl Thread {
    /// Enters the next segment. Calls may go to and fro between two, so one that is there already is
    /// entered without system calls.
    #[cold]
    pub(super) fn grow(&self) -> bool {
        self.enter_next(self.top.load(Ordering::Relaxed)) || self.add_next()
    }

    /// Enters the next segment if there is one, and `top` is where it was. A handler in between may have
    /// done the same, or be about to, with the same values.
    fn enter_next(&self, top: usize) -> bool {
        // SAFETY: `top` is never below the first frame of a segment, and where it is at the end of one,
        // the segment before it is linked to the next, if there is one; segments live as long as the
        // thread.
        unsafe {
            if !top.is_multiple_of(SEGMENT) {
                return true;
            }
            let last = (top - FRAME) as *mut Frame;
            let next = (*segment_of(last)).next;
            if next.is_null() {
                return false;
            }
            let sp = (*last).sp.load(Ordering::Relaxed);
            (*next).sp.store(sp, Ordering::Relaxed);
            (*next).node = (*last).node;
            self.move_top(top, bottom(next));
        }
        true
    }

    /// Links another segment, and enters it.
    fn add_next(&self) -> bool {
        let _signals = SignalsBlocked::new();
        let top = self.top.load(Ordering::Relaxed);
        if !top.is_multiple_of(SEGMENT) {
            return true;
        }
        // SAFETY: `top` is at the end of the segment before it; segments live as long as the
        // thread, and a new one is ours.
        unsafe {
            let segment = segment_of((top - FRAME) as *const Frame);
            if (*segment).next.is_null() {
                let mut next = self.unused_segment(segment);
                if next.is_null() {
                    next = take_segment();
                }
                if next.is_null() {
                    return false;
                }
                (*next).owner = ptr::from_ref(self).cast_mut();
                (*next).previous = segment;
                (*next).next = ptr::null_mut();
                (*segment).next = next;
            }
        }
        self.enter_next(top)
    }

    /// Takes a segment without a live frame out of the chain below `top`, if one of the last few
    /// is such: coroutines that call in turns would otherwise use ever more.
    fn unused_segment(&self, last: *mut Segment) -> *mut Segment {
        const LOOK_AT: usize = 64;
        let mut at = last;
        // SAFETY: links lead to the first segment; no frame of an unused one is live, so nothing
        // refers to it but its neighbours.
        unsafe {
            for _ in 0..LOOK_AT {
                let previous = (*at).previous;
                if previous.is_null() || (*previous).previous.is_null() {
                    break;
                }
                if is_unused(previous) {
                    (*at).previous = (*previous).previous;
                    (*(*previous).previous).next = at;
                    let mut has_left = false;
                    for frame in frames_in(previous) {
                        if is_left(frame) {
                            has_left = true;
                            continue;
                        }
                        if (*frame).sp.load(Ordering::Acquire) == MOVED {
                            sampling::take_back((*frame).node, (*frame).weight);
                        }
                        (*frame).sp.store(FREE, Ordering::Relaxed);
                    }
                    if has_left {
                        give_back_segment(previous);
                        continue;
                    }
                    return previous;
                }
                at = previous;
            }
        }
        ptr::null_mut()
    }

    /// The first segment.
    pub(crate) fn lowest_segment(&self) -> *mut Segment {
        let mut segment = segment_of((self.top.load(Ordering::Relaxed) - FRAME) as *const Frame);
        // SAFETY: links lead to the first segment; segments live as long as the thread.
        unsafe {
            while !(*segment).previous.is_null() {
                segment = (*segment).previous;
            }
        }
        segment
    }

    /// At the thread's end: gives back the segments behind the first, and says whether no frame
    /// was live.
    pub(crate) fn release_segments(&self) -> bool {
        self.settle_moved();
        self.drop_dead();
        // SAFETY: frames below `top` are initialised.
        if self.frames().any(|frame| unsafe { (*frame).sp.load(Ordering::Relaxed) } > MOVED) {
            return false;
        }
        // SAFETY: no frame is live, so nothing refers to the segments.
        unsafe {
            let first = self.lowest_segment();
            // Frames that are set aside stay below `top`, which must not lead into segments that are others' by then.
            if segment_of((self.top.load(Ordering::Relaxed) - FRAME) as *const Frame) != first {
                self.top.store(first as usize + SEGMENT, Ordering::Relaxed);
            }
            let mut segment = (*first).next;
            (*first).next = ptr::null_mut();
            forget_stack(first);
            while !segment.is_null() {
                let next = (*segment).next;
                forget_stack(segment);
                give_back_segment(segment);
                segment = next;
            }
        }
        true
    }
}

/// The stack of its thread is no more: no call returns there.
///
/// # Safety
/// The segment is the calling thread's, which ends.
unsafe fn forget_stack(segment: *mut Segment) {
    // SAFETY: the frames of a segment are initialised, zero at first.
    unsafe {
        for frame in frames_in(segment).filter(|&frame| is_left(frame)) {
            if (*frame).may_return == NOT_JUMPED {
                (*frame).may_return = LEFT;
            }
        }
    }
}

fn frames_in(segment: *mut Segment) -> impl Iterator<Item = *mut Frame> {
    (1..SEGMENT / FRAME).map(move |i| (segment as usize + i * FRAME) as *mut Frame)
}

fn is_unused(segment: *mut Segment) -> bool {
    // SAFETY: the frames of a segment are initialised, zero at first.
    frames_in(segment)
        .all(|frame| unsafe { is_left(frame) || (*frame).sp.load(Ordering::Acquire) <= MOVED })
}
