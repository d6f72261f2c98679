//! Frames that look left for good: by `longjmp`, by an exception, with their thread.
//!
//! A look is no proof: greenlet copies slices of the stack away and back, and what lies deeper than a running call may
//! be there again later. So such a frame is not used again at once; it is set aside, with all that its call needs to
//! return, until very many others were; or never, if the thread has never called what jumps or unwinds. In the shadow stack it stands for the frame below it from then on. If its
//! call returns after all, stacks are sliced in this process, and nothing is inferred from addresses any more:
//! frames that are left for good are lost then, and when none are to be had, calls run without.

use core::sync::atomic::{AtomicBool, Ordering};

use chase_format::layout::Node;

use super::{Frame, MOVED, SEGMENT, Segment, mark_dead, segment_of};
use crate::arch::{exit_of_left, set_context};
use crate::recording::Lost;
use crate::thread::Thread;
use crate::tree::{node_at, reference};
use crate::{recording, thread};

/// Whether a call has returned whose frame was set aside.
static SLICED: AtomicBool = AtomicBool::new(false);

/// Whether a frame may be taken for left because of where it is.
pub(super) fn infers() -> bool {
    !SLICED.load(Ordering::Relaxed)
}

/// Whether a frame is set aside.
///
/// # Safety
/// The frame is below the top of its thread.
pub(super) unsafe fn is_left(frame: *const Frame) -> bool {
    // SAFETY: the caller vouches for the frame.
    unsafe { (*frame).exit == exit_of_left() }
}

impl Thread {
    /// Sets a frame aside whose call is accounted for.
    pub(super) fn set_aside(&self, frame: *mut Frame) {
        // SAFETY: the frame is this thread's, and live.
        unsafe {
            (*frame).own_ref = reference((*frame).node);
            (*frame).exit = exit_of_left();
            // Nothing that this thread is known to do leaves frames, so its stack is sliced, most likely.
            (*segment_of(frame)).keeps |= !self.jumps.get();
            mark_dead(frame);
        }
    }

    /// Has the frames that are set aside at the top stand for the one below them.
    pub(super) fn refresh_left(&self) {
        let top = self.top.load(Ordering::Relaxed);
        let mut at = top - size_of::<Frame>();
        // SAFETY: frames and links below `top` are initialised, and live as long as the thread.
        unsafe {
            if at.is_multiple_of(SEGMENT) || !is_left(at as *const Frame) {
                return;
            }
            let live = self.frames().find(|&frame| (*frame).sp.load(Ordering::Relaxed) > MOVED);
            let (sp, node): (usize, *mut Node) = live
                .map_or((usize::MAX, self.tree.root.get()), |frame| {
                    ((*frame).sp.load(Ordering::Relaxed), (*frame).node)
                });
            while live.is_none_or(|live| live as usize != at) {
                if at.is_multiple_of(SEGMENT) {
                    let segment = at as *mut Segment;
                    (*segment).sp.store(sp, Ordering::Relaxed);
                    (*segment).node = node;
                    if (*segment).previous.is_null() {
                        return;
                    }
                    at = (*segment).previous as usize + SEGMENT;
                } else if is_left(at as *const Frame) {
                    (*(at as *mut Frame)).node = node;
                    (*(at as *mut Frame)).sp.store(sp, Ordering::Relaxed);
                }
                at -= size_of::<Frame>();
            }
        }
    }
}

/// The call of a frame that was set aside has returned: it was accounted for, and nothing is inferred any more.
///
/// # Safety
/// Called by the call path, with a frame that was set aside and has just returned.
pub(crate) unsafe extern "C" fn leave_left(frame: *mut Frame) {
    if !SLICED.swap(true, Ordering::Relaxed) {
        recording::unseen(Lost::StackSliced);
    }
    // SAFETY: the frame's segment is not used again before its owner knows; its node lives as long as the mapping.
    unsafe {
        let caller = node_at((*node_at((*frame).own_ref)).parent_ref);
        let owner = (*segment_of(frame)).owner;
        mark_dead(frame);
        if let Some(thread) = thread::current().filter(|thread| core::ptr::eq(*thread, owner)) {
            (*frame).exit = 0;
            thread.drop_dead();
            thread.refresh_left();
            set_context(caller as usize);
        }
    }
}
