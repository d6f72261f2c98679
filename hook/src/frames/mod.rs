//! The shadow stack of a thread, and the slow half of the call path.
//!
//! A frame holds what the call path took off the real stack, and is named by the address that its call returns to
//! (`pads.S`). Frames live in segments, linked in the order in which they were entered; the first frame's place
//! holds the link. The call path claims and releases frames by single instructions on [`Thread::top`], so a
//! signal handler between any two instructions finds a consistent stack.
//!
//! Frames can be left behind: by `longjmp`, by exceptions, by coroutines that return in any order
//! and on any stack or thread. Three rules keep this safe:
//!
//! * A live frame is never overwritten: `top` moves down past frames only that have returned. One whose call is
//!   left, or seems to be, is set aside with all that it needs to return: `left.rs`.
//! * What is open around a call that is not the innermost is told by `nesting.rs`.
//! * A frame that ends on another thread than it began on is counted in that thread's tree, and
//!   its owner takes the call out of its own tree when it meets the dead frame.

mod callers;
mod inherited;
mod left;
mod nesting;
mod segments;
mod slow_path;

use core::mem::offset_of;
use core::ptr;
use core::sync::atomic::{AtomicUsize, Ordering};

use chase_format::layout::Node;

use crate::arch::{add_to_own, move_own, set_context};
use crate::clock;
use crate::sampling;
use crate::thread::Thread;

pub(crate) use self::inherited::OpenCalls;
use self::left::is_left;
pub(crate) use self::left::leave_left;
pub(crate) use self::segments::{
    after_fork_in_child, after_fork_in_parent, before_fork, first_segment, give_back_segment,
    take_first_segment, top_of,
};
use self::slow_path::is_timed;
pub(crate) use self::slow_path::{enter_due, enter_slow, leave_framed, leave_moved, leave_slow};

/// Bytes of a frame.
pub(crate) const FRAME: usize = 64;
/// Bytes, and alignment, of a segment: 63 frames. (Calls that go to and fro between two take the slow path; with larger
/// ones there would be fewer threads that get one.)
pub(crate) const SEGMENT: usize = 64 * FRAME;

/// [`Frame::sp`] of a frame that is free, or claimed and not filled yet.
const FREE: usize = 0;
/// [`Frame::sp`] of a frame that has ended while it was not on top.
const DEAD: usize = 1;
/// The same, on another thread, which has recorded the call as its own.
const MOVED: usize = 2;

/// Why the slow half of the entry is called, where it is told no frame: the slot's countdown is at zero, or it
/// has wrapped round.
pub(crate) const AT_ZERO: usize = 1;
pub(crate) const WRAPPED: usize = 2;

/// A call under way.
#[repr(C, align(64))]
pub(crate) struct Frame {
    pub(crate) return_address: usize,
    /// What the pad calls.
    pub(crate) target: usize,
    /// Where the pad goes when that has returned. (Until `chase_start` has run: the real function.)
    pub(crate) exit: usize,
    /// Where the return address was on the real stack; or a state.
    pub(crate) sp: AtomicUsize,
    pub(crate) start_ticks: u64,
    pub(crate) node: *mut Node,
    /// Where only some calls are timed: how many this one stands for; 0: it is not timed.
    pub(crate) weight: u32,
    /// Of a frame that is set aside: 0 if its place may be used again; otherwise why its call may return (`left.rs`).
    pub(crate) may_return: u32,
    /// When the making of a sample began; 0: not known.
    pub(crate) began_ticks: u64,
}

/// What is in the place of a segment's first frame. `sp` and `node` are those of the frame below,
/// since the call path looks there for the caller.
#[repr(C, align(64))]
pub(crate) struct Segment {
    owner: *mut Thread,
    previous: *mut Segment,
    next: *mut Segment,
    sp: AtomicUsize,
    unused: u64,
    node: *mut Node,
}

const _: () = {
    assert!(size_of::<Frame>() == FRAME && size_of::<Segment>() == FRAME);
    assert!(offset_of!(Frame, sp) == offset_of!(Segment, sp));
    assert!(offset_of!(Frame, node) == offset_of!(Segment, node));
    // The CFI knows this.
    assert!(offset_of!(Frame, return_address) == 0);
};

fn segment_of(frame: *const Frame) -> *mut Segment {
    (frame as usize & !(SEGMENT - 1)) as *mut Segment
}

/// The frames of a thread from the top down, over all its segments, but for those that are set aside.
struct Below {
    at: usize,
}

impl Iterator for Below {
    type Item = *mut Frame;

    fn next(&mut self) -> Option<*mut Frame> {
        loop {
            let mut frame = self.at.wrapping_sub(FRAME);
            while frame.is_multiple_of(SEGMENT) {
                // SAFETY: a frame's place at a segment's start is its link.
                let previous = unsafe { (*(frame as *const Segment)).previous };
                if previous.is_null() {
                    return None;
                }
                frame = previous as usize + SEGMENT - FRAME;
            }
            self.at = frame;
            let frame = frame as *mut Frame;
            // SAFETY: frames below `top` are initialised.
            if !unsafe { is_left(frame) } {
                return Some(frame);
            }
        }
    }
}

impl Thread {
    /// Whether `address` is on the thread's own stack.
    fn holds(&self, address: usize) -> bool {
        self.stack.get().holds(address)
    }

    fn frames(&self) -> Below {
        Below { at: self.top.load(Ordering::Relaxed) }
    }

    /// Moves `top` down past dead frames.
    fn drop_dead(&self) {
        loop {
            let top = self.top.load(Ordering::Relaxed);
            let frame = (top.wrapping_sub(FRAME)) as *mut Frame;
            // SAFETY: `top` is never below the first frame of a segment; frames and links live as
            // long as the thread.
            unsafe {
                if (frame as usize).is_multiple_of(SEGMENT) {
                    let previous = (*segment_of(frame)).previous;
                    if previous.is_null() {
                        return;
                    }
                    let end = previous as usize + SEGMENT;
                    let last = (end - FRAME) as *mut Frame;
                    if (*last).sp.load(Ordering::Relaxed) > MOVED || is_left(last) {
                        return;
                    }
                    if !self.move_top(top, end) {
                        return;
                    }
                    continue;
                }
                let state = (*frame).sp.load(Ordering::Acquire);
                if is_left(frame) || state != DEAD && state != MOVED {
                    return;
                }
                if state == MOVED {
                    sampling::take_back((*frame).node, (*frame).weight);
                }
                (*frame).sp.store(FREE, Ordering::Relaxed);
                if !self.move_top(top, frame as usize) {
                    return;
                }
            }
        }
    }

    fn move_top(&self, from: usize, to: usize) -> bool {
        move_own(&self.top, from, to)
    }

    fn is_innermost(&self, frame: *const Frame) -> bool {
        self.top.load(Ordering::Relaxed) == frame as usize + FRAME
    }

    /// Makes the innermost frame's node the context.
    fn show_context(&self) {
        set_context(self.innermost_node() as usize);
    }

    /// The node of the innermost frame, or of the thread itself.
    pub(crate) fn innermost_node(&self) -> *mut Node {
        let innermost = (self.top.load(Ordering::Relaxed) - FRAME) as *const Frame;
        // SAFETY: below `top` is a frame, or a segment's link, whose node is in the same place.
        unsafe { (*innermost).node }
    }

    /// The node of the innermost open call that had begun at a time and whose beginning is known.
    pub(crate) fn innermost_since(&self, ticks: u64) -> Option<*mut Node> {
        // SAFETY: frames below `top` are initialised, and those that are not free are live.
        let is_open = |frame: &*mut Frame| unsafe {
            (**frame).sp.load(Ordering::Relaxed) > MOVED
                && slow_path::is_timed(*frame)
                && (**frame).start_ticks <= ticks
        };
        // SAFETY: as above.
        self.frames().find(is_open).map(|frame| unsafe { (*frame).node })
    }

    /// Drops the innermost frame, whose call is recorded. What is dead below it is dropped at the next call.
    fn leave_innermost(&self, frame: *mut Frame) {
        // SAFETY: as above.
        unsafe { (*frame).sp.store(FREE, Ordering::Relaxed) };
        if !self.move_top(frame as usize + FRAME, frame as usize) {
            return self.leave(frame, clock::now());
        }
        self.show_context();
    }

    /// What is left behind may have been about to count a call that had ended, whose frame is free by then:
    /// counts it as one that was left. Frames that are claimed and not filled look the same, so the node's
    /// calls tell whether one is missing.
    fn tell_of_uncounted(&self) {
        let is_free = |&frame: &*mut Frame| {
            // SAFETY: frames below `top` are initialised.
            unsafe { (*frame).sp.load(Ordering::Relaxed) == FREE }
        };
        for frame in self.frames().take_while(is_free) {
            // SAFETY: as above; the node is one of this thread's, or null where the place was never used.
            unsafe {
                let node = (*frame).node;
                if !node.is_null() && !sampling::is_sampled(node) && self.misses_call(node) {
                    (*node).unwound += 1;
                }
            }
        }
    }

    /// Whether a call of this node is neither open, nor completed, nor left.
    ///
    /// # Safety
    /// The node is this thread's, and its calls are all timed.
    #[cold]
    unsafe fn misses_call(&self, node: *mut Node) -> bool {
        let is_open = |&frame: &*mut Frame| {
            // SAFETY: frames below `top` are initialised.
            unsafe { (*frame).sp.load(Ordering::Relaxed) >= MOVED && (*frame).node == node }
        };
        let open = self.frames().filter(is_open).count() as u64;
        // SAFETY: the caller vouches for the node.
        let (calls, unwound) = unsafe { ((*node).calls, u64::from((*node).unwound)) };
        calls > self.tree.completed(node) + unwound + open
    }

    fn claim(&self) -> *mut Frame {
        loop {
            let top = self.top.load(Ordering::Relaxed);
            if top.is_multiple_of(SEGMENT) && !self.grow() {
                return ptr::null_mut();
            }
            let frame = add_to_own(&self.top, FRAME);
            if !frame.is_multiple_of(SEGMENT) {
                return frame as *mut Frame;
            }
            // A handler filled the segment and switched away in between; go back and grow.
            self.move_top(frame + FRAME, frame);
        }
    }

    /// Takes the calls that ended on other threads out of this one's tree.
    pub(crate) fn settle_moved(&self) {
        for frame in self.frames() {
            // SAFETY: frames below `top` are initialised; a moved one's node is this thread's.
            unsafe {
                if (*frame).sp.load(Ordering::Acquire) == MOVED {
                    sampling::take_back((*frame).node, (*frame).weight);
                    (*frame).sp.store(DEAD, Ordering::Relaxed);
                }
            }
        }
    }
}

/// Marks a frame as ended. If it is the last of its segment, the next one's link shows it still.
///
/// # Safety
/// The frame belongs to the calling thread.
unsafe fn mark_dead(frame: *mut Frame) {
    // SAFETY: vouched for by the caller; links live as long as the thread.
    unsafe {
        (*frame).sp.store(DEAD, Ordering::Relaxed);
        let next = (*segment_of(frame)).next;
        if (frame as usize + FRAME).is_multiple_of(SEGMENT) && !next.is_null() {
            (*next).sp.store(FREE, Ordering::Relaxed);
        }
    }
}
