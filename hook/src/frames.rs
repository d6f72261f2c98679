//! The shadow stack of a thread.
//!
//! A frame holds what the call path took off the real stack, and is identified by the address that its call returns
//! to (`pads.S`). Frames live in segments, which are linked in the order in which they were entered; the header with
//! the links takes the place of a segment's first frame. The call path claims and releases frames by single
//! instructions on `ThreadHead::top`, so a signal handler that comes between any two instructions finds a consistent
//! stack.
//!
//! Calls can be abandoned without returning: by `longjmp`, by exceptions, by coroutines that return in any order and
//! on any stack or thread. Three rules keep this safe:
//!
//! * A live frame is never overwritten: `top` only moves down past frames whose call has returned. A frame whose call
//!   is abandoned, or seems to be, is set aside with all that the call needs to return: `set_aside.rs`.
//! * `nesting.rs` decides which open calls enclose a call.
//! * A call that returns on another thread than it began on is counted in that thread's tree; its owner subtracts it
//!   from its own tree when it comes across the ended frame.

mod asking;
mod callers;
mod chain;
mod inherited;
mod nesting;
mod set_aside;

use core::ptr;
use core::sync::atomic::Ordering;

use chase_format::layout::Node;

use crate::abi::{DEAD, FRAME, FREE, Frame, MOVED, SEGMENT, Segment, segment_of};
use crate::arch::{add_to_own, move_own, set_context};
use crate::clock;
use crate::node::{add_unwound, is_framed, is_sampled, subtract_call};
use crate::segments::is_set_aside;
use crate::thread::Thread;

pub(crate) use self::inherited::OpenCalls;
pub(crate) use self::set_aside::return_from_set_aside;

/// Iterates over a thread's frames from the top down, over all segments, except for those that are set aside.
struct FramesDown {
    at: usize,
}

impl Iterator for FramesDown {
    type Item = *mut Frame;

    fn next(&mut self) -> Option<*mut Frame> {
        loop {
            let mut frame = self.at.wrapping_sub(FRAME);
            while frame.is_multiple_of(SEGMENT) {
                // SAFETY: in the place of a segment's first frame is its header.
                let previous = unsafe { (*(frame as *const Segment)).previous };
                if previous.is_null() {
                    return None;
                }
                frame = previous as usize + SEGMENT - FRAME;
            }
            self.at = frame;
            let frame = frame as *mut Frame;
            // SAFETY: frames below `top` are initialised.
            if !unsafe { is_set_aside(frame) } {
                return Some(frame);
            }
        }
    }
}

impl Thread {
    /// Whether `address` is on the thread's own stack.
    pub(crate) fn holds(&self, address: usize) -> bool {
        self.stack.get().holds(address)
    }

    fn frames(&self) -> FramesDown {
        FramesDown { at: self.head.top.load(Ordering::Relaxed) }
    }

    /// Returns the frames of open calls, innermost first, and where their return addresses were.
    fn open_frames(&self) -> impl Iterator<Item = (*mut Frame, usize)> {
        self.frames().map(|frame| (frame, sp_of(frame))).filter(|&(_, at)| at > MOVED)
    }

    /// Whether a call made at this stack pointer has a frame.
    pub(crate) fn has_frame_at(&self, sp: usize) -> bool {
        self.open_frames().any(|(_, at)| at == sp)
    }

    /// Moves `top` down past frames that have ended.
    pub(crate) fn drop_ended_frames(&self) {
        loop {
            let top = self.head.top.load(Ordering::Relaxed);
            let frame = (top.wrapping_sub(FRAME)) as *mut Frame;
            // SAFETY: `top` is never below the first frame of a segment; frames and headers live as long as the thread.
            unsafe {
                if (frame as usize).is_multiple_of(SEGMENT) {
                    let previous = (*segment_of(frame)).previous;
                    if previous.is_null() {
                        return;
                    }
                    let end = previous as usize + SEGMENT;
                    let last = (end - FRAME) as *mut Frame;
                    if (*last).sp.load(Ordering::Relaxed) > MOVED || is_set_aside(last) {
                        return;
                    }
                    if !self.move_top(top, end) {
                        return;
                    }
                    continue;
                }
                let state = (*frame).sp.load(Ordering::Acquire);
                if is_set_aside(frame) || state != DEAD && state != MOVED {
                    return;
                }
                if state == MOVED {
                    subtract_call((*frame).node, (*frame).weight);
                }
                (*frame).sp.store(FREE, Ordering::Relaxed);
                if !self.move_top(top, frame as usize) {
                    return;
                }
            }
        }
    }

    pub(crate) fn move_top(&self, from: usize, to: usize) -> bool {
        move_own(&self.head.top, from, to)
    }

    pub(crate) fn is_innermost(&self, frame: *const Frame) -> bool {
        self.head.top.load(Ordering::Relaxed) == frame as usize + FRAME
    }

    /// Makes the innermost frame's node the thread's context.
    pub(crate) fn show_context(&self) {
        set_context(self.innermost_node() as usize);
    }

    /// Makes the caller of the innermost frame the thread's context, before that frame is released.
    ///
    /// # Safety
    /// The frame is the calling thread's innermost one.
    pub(crate) unsafe fn show_caller(frame: *const Frame) {
        // SAFETY: below a frame is another one, or a segment's header, which has the node at the same offset.
        set_context(unsafe { (*frame.sub(1)).node } as usize);
    }

    /// Returns the node of the innermost frame; that of the thread itself if there is none.
    pub(crate) fn innermost_node(&self) -> *mut Node {
        let innermost = (self.head.top.load(Ordering::Relaxed) - FRAME) as *const Frame;
        // SAFETY: below `top` is a frame or a segment's header, which have the node at the same offset.
        unsafe { (*innermost).node }
    }

    /// Returns the open calls whose beginning was timed, innermost first: the node of each, and when it began.
    pub(crate) fn timed_calls(&self) -> impl Iterator<Item = (*mut Node, u64)> {
        // SAFETY: frames of open calls are live.
        self.open_frames().filter_map(|(frame, _)| unsafe {
            is_timed(frame).then(|| ((*frame).node, (*frame).start_ticks))
        })
    }

    /// Releases the innermost frame, whose call is recorded. Frames below that have ended are released by the next
    /// call.
    pub(crate) fn leave_innermost(&self, frame: *mut Frame) {
        // SAFETY: as above.
        unsafe { (*frame).sp.store(FREE, Ordering::Relaxed) };
        if !self.move_top(frame as usize + FRAME, frame as usize) {
            return self.leave(frame, clock::now());
        }
        self.show_context();
    }

    /// Counts abandoned calls that had ended but were not recorded yet: their exit was interrupted after it had freed
    /// the frame. Frames that are claimed but not filled look the same, so the node's number of calls decides whether
    /// one is missing.
    fn count_unrecorded_ends(&self) {
        for frame in self.frames().take_while(|&frame| sp_of(frame) == FREE) {
            // SAFETY: frames below `top` are initialised; the node is one of this thread's, or null where the frame was never used.
            unsafe {
                let node = (*frame).node;
                if !node.is_null() && !is_sampled(node) && self.misses_call(node) {
                    add_unwound(node);
                }
            }
        }
    }

    /// Whether a call of this node is neither open, nor completed, nor abandoned.
    ///
    /// # Safety
    /// The node is this thread's, and its calls are all timed.
    #[cold]
    unsafe fn misses_call(&self, node: *mut Node) -> bool {
        let is_open = |&frame: &*mut Frame| {
            // SAFETY: frames below `top` are initialised.
            sp_of(frame) >= MOVED && unsafe { (*frame).node } == node
        };
        let open = self.frames().filter(is_open).count() as u64;
        // SAFETY: the caller vouches for the node.
        let (calls, unwound) = unsafe { ((*node).calls, u64::from((*node).unwound)) };
        calls > self.tree.completed(node) + unwound + open
    }

    pub(crate) fn claim(&self) -> *mut Frame {
        loop {
            let top = self.head.top.load(Ordering::Relaxed);
            if top.is_multiple_of(SEGMENT) && !self.grow() {
                return ptr::null_mut();
            }
            let frame = add_to_own(&self.head.top, FRAME);
            if !frame.is_multiple_of(SEGMENT) {
                return frame as *mut Frame;
            }
            // A handler has filled the segment and switched away meanwhile; undo this and try again.
            self.move_top(frame + FRAME, frame);
        }
    }

    /// Subtracts the calls that ended on other threads from this thread's tree.
    pub(crate) fn subtract_moved_calls(&self) {
        for frame in self.frames() {
            // SAFETY: frames below `top` are initialised; a moved one's node is this thread's.
            unsafe {
                if (*frame).sp.load(Ordering::Acquire) == MOVED {
                    subtract_call((*frame).node, (*frame).weight);
                    (*frame).sp.store(DEAD, Ordering::Relaxed);
                }
            }
        }
    }
}

/// Returns [`Frame::sp`] of a frame below its thread's top.
fn sp_of(frame: *const Frame) -> usize {
    // SAFETY: such frames are initialised, and stay mapped.
    unsafe { (*frame).sp.load(Ordering::Relaxed) }
}

/// Whether the call's beginning was timed.
///
/// # Safety
/// The frame is live.
pub(crate) unsafe fn is_timed(frame: *const Frame) -> bool {
    // SAFETY: a live frame and its node are initialised.
    unsafe { (*frame).weight > 0 || !is_framed((*frame).node) }
}

/// Marks a frame as ended. If it is the last of its segment, also updates its copy in the next segment's header.
///
/// # Safety
/// The frame belongs to the calling thread.
unsafe fn mark_dead(frame: *mut Frame) {
    // SAFETY: vouched for by the caller; headers live as long as the thread.
    unsafe {
        (*frame).sp.store(DEAD, Ordering::Relaxed);
        let next = (*segment_of(frame)).next;
        if (frame as usize + FRAME).is_multiple_of(SEGMENT) && !next.is_null() {
            (*next).sp.store(FREE, Ordering::Relaxed);
        }
    }
}
