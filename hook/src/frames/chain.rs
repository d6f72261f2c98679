//! How a thread's chain of segments grows and ends.

use core::ptr;
use core::sync::atomic::Ordering;

use crate::abi::{FRAME, FREE, Frame, MOVED, SEGMENT, Segment, segment_of};
use crate::node::take_back;
use crate::segments::{
    LEFT, NOT_JUMPED, bottom, frames_in, give_back_segment, is_left, is_unused, lowest_segment,
    take_segment,
};
use crate::signals::SignalsBlocked;
use crate::thread::Thread;

impl Thread {
    /// Enters the next segment. Calls may go to and fro between two, so one that is there already is
    /// entered without system calls.
    #[cold]
    pub(super) fn grow(&self) -> bool {
        self.enter_next(self.head.top.load(Ordering::Relaxed)) || self.add_next()
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
        let top = self.head.top.load(Ordering::Relaxed);
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
                (*next).owner = ptr::from_ref(&self.head).cast_mut();
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
                            take_back((*frame).node, (*frame).weight);
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
            let first = lowest_segment(self.head.top.load(Ordering::Relaxed));
            // Frames that are set aside stay below `top`, which must not lead into segments that are others' by then.
            if segment_of((self.head.top.load(Ordering::Relaxed) - FRAME) as *const Frame) != first
            {
                self.head.top.store(first as usize + SEGMENT, Ordering::Relaxed);
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
