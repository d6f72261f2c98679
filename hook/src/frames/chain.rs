//! How a thread's chain of segments grows, and ends.

use core::ptr;
use core::sync::atomic::Ordering;

use crate::abi::{FRAME, FREE, Frame, MOVED, SEGMENT, Segment, segment_of};
use crate::node::subtract_call;
use crate::segments::{
    ABANDONED, WITHOUT_JUMP, bottom, frames_in, give_back_segment, is_set_aside, is_unused,
    lowest_segment, take_segment,
};
use crate::signals::SignalsBlocked;
use crate::thread::Thread;

impl Thread {
    /// Enters the next segment. Calls may cross between two segments many times, so one that exists is entered
    /// without system calls.
    #[cold]
    pub(super) fn grow(&self) -> bool {
        let top = self.head.top.load(Ordering::Relaxed);
        self.is_at_end(top) && (self.enter_next(top) || self.add_next())
    }

    /// Whether `top` is at the end of a segment of this thread. An exit that a handler interrupts may just have moved it
    /// from the beginning of one into its header instead, and be about to find that out. What is below is not ours then.
    fn is_at_end(&self, top: usize) -> bool {
        // SAFETY: frames, and what is before the first one, are mapped.
        unsafe { ptr::eq((*segment_of((top - FRAME) as *const Frame)).owner, &raw const self.head) }
    }

    /// Enters the next segment, if there is one and `top` has not moved. A handler may have done the same meanwhile,
    /// or may be about to, with the same values.
    fn enter_next(&self, top: usize) -> bool {
        // SAFETY: `top` is never below the first frame of a segment. Where it is at the end of one, that segment is linked to
        // the next, if there is one. Segments live as long as the thread.
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

    /// Adds a segment to the chain, and enters it.
    fn add_next(&self) -> bool {
        let _signals = SignalsBlocked::new();
        let top = self.head.top.load(Ordering::Relaxed);
        if !top.is_multiple_of(SEGMENT) {
            return true;
        }
        // SAFETY: `top` is at the end of the segment before it; segments live as long as the thread, and nobody else uses the
        // new one.
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

    /// Takes a segment without live frames out of the chain below `top`, if one of the last few is such. Otherwise
    /// coroutines that call in turns would use more and more. Returns null if there is none.
    fn unused_segment(&self, last: *mut Segment) -> *mut Segment {
        const LOOK_AT: usize = 64;
        let mut at = last;
        // SAFETY: links lead to the first segment. No frame of an unused segment is live, so only its neighbours refer to it.
        unsafe {
            for _ in 0..LOOK_AT {
                let previous = (*at).previous;
                if previous.is_null() || (*previous).previous.is_null() {
                    break;
                }
                if is_unused(previous) {
                    (*at).previous = (*previous).previous;
                    (*(*previous).previous).next = at;
                    let mut has_set_aside = false;
                    for frame in frames_in(previous) {
                        if is_set_aside(frame) {
                            has_set_aside = true;
                            continue;
                        }
                        if (*frame).sp.load(Ordering::Acquire) == MOVED {
                            subtract_call((*frame).node, (*frame).weight);
                        }
                        (*frame).sp.store(FREE, Ordering::Relaxed);
                    }
                    if has_set_aside {
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

    /// At the thread's end: releases the segments after the first. Returns false, without doing so, if a frame is
    /// live.
    pub(crate) fn release_segments(&self) -> bool {
        self.subtract_moved_calls();
        self.drop_ended_frames();
        if self.open_frames().next().is_some() {
            return false;
        }
        // SAFETY: no frame is live, so nothing refers to the segments.
        unsafe {
            let first = lowest_segment(self.head.top.load(Ordering::Relaxed));
            // Frames that are set aside stay below `top`, which must not point into segments that may soon be another
            // thread's.
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

/// Marks the set-aside frames of a segment as those of a stack that no longer exists, so their calls can't return.
///
/// # Safety
/// The segment belongs to the calling thread, which is ending.
unsafe fn forget_stack(segment: *mut Segment) {
    // SAFETY: the frames of a segment are initialised, zero at first.
    unsafe {
        for frame in frames_in(segment).filter(|&frame| is_set_aside(frame)) {
            if (*frame).may_return == WITHOUT_JUMP {
                (*frame).may_return = ABANDONED;
            }
        }
    }
}
