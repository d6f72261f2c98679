//! Frames of calls that were abandoned: by `longjmp`, by an exception, by the end of their thread, or by a switch to
//! another stack.
//!
//! Such a call may still return. On another stack, a coroutine may continue. On the thread's own stack nothing proves
//! that it will not: greenlet copies slices of the stack away and back, so what lies deeper than a running call may
//! come back later. So the frame is not reused, but set aside with all that its call needs to return. It stays so
//! forever if it is on another stack, or if its thread has called nothing that jumps or unwinds since; otherwise until
//! very many others were set aside. While it is set aside, the frame has the values of the frame below it in the shadow stack. If a
//! call returns that seemed abandoned on the thread's own stack, then this process slices stacks, and no set-aside
//! frame is reused any more.
//!
//! Frames whose calls never return are lost this way; when there are none left, calls run without frames.

use core::ptr;
use core::sync::atomic::Ordering;

use chase_format::layout::Node;

use super::{is_timed, mark_dead};
use crate::abi::{Frame, SEGMENT, Segment, segment_of};
use crate::recording::{self, Lost};
use crate::segments::{
    ABANDONED, ELSEWHERE, WITHOUT_JUMP, is_set_aside, return_in_other_segment, stop_assuming_over,
};
use crate::stubs::exit_of_set_aside;
use crate::thread::{self, Thread};

impl Thread {
    /// Sets aside a frame whose call is accounted for. `is_elsewhere`: the frame is on another stack than the code
    /// that goes on, or in a slice that was copied away.
    pub(super) fn set_aside(&self, frame: *mut Frame, is_elsewhere: bool) {
        let may_return = match is_elsewhere {
            true => ELSEWHERE,
            // SAFETY: the frame is this thread's, and live.
            false if unsafe { self.may_have_been_abandoned(frame) } => ABANDONED,
            false => WITHOUT_JUMP,
        };
        // SAFETY: the frame is this thread's, and live.
        unsafe {
            (*frame).may_return = may_return;
            (*frame).exit = exit_of_set_aside();
            mark_dead(frame);
        }
    }

    /// Whether any call that this thread is known to have made since the frame was entered may have abandoned it.
    ///
    /// # Safety
    /// The frame is this thread's, and live.
    unsafe fn may_have_been_abandoned(&self, frame: *const Frame) -> bool {
        let last = self.last_jump_ticks.get();
        // SAFETY: as the caller says. (It is unknown when calls began that are not timed.)
        unsafe { last > 0 && (!is_timed(frame) || last > (*frame).start_ticks) }
    }

    /// Copies the values of the topmost live frame to the frames above it that are set aside.
    pub(super) fn refresh_set_aside(&self) {
        let top = self.head.top.load(Ordering::Relaxed);
        let mut at = top - size_of::<Frame>();
        // SAFETY: frames and links below `top` are initialised, and live as long as the thread.
        unsafe {
            if at.is_multiple_of(SEGMENT) || !is_set_aside(at as *const Frame) {
                return;
            }
            let live = self.open_frames().next();
            let (sp, node): (usize, *mut Node) =
                live.map_or((usize::MAX, self.tree.root.get()), |(live, sp)| (sp, (*live).node));
            while live.is_none_or(|(live, _)| live as usize != at) {
                if at.is_multiple_of(SEGMENT) {
                    let segment = at as *mut Segment;
                    (*segment).sp.store(sp, Ordering::Relaxed);
                    (*segment).node = node;
                    if (*segment).previous.is_null() {
                        return;
                    }
                    at = (*segment).previous as usize + SEGMENT;
                } else if is_set_aside(at as *const Frame) {
                    (*(at as *mut Frame)).node = node;
                    (*(at as *mut Frame)).sp.store(sp, Ordering::Relaxed);
                }
                at -= size_of::<Frame>();
            }
        }
    }
}

/// Handles the return of a call whose frame was set aside, and which was accounted for already.
///
/// # Safety
/// The frame was set aside, and its call has just returned on the calling thread.
pub(crate) unsafe fn return_from_set_aside(frame: *mut Frame) {
    // SAFETY: the frame's segment is not reused before its owner knows; the owners' `Thread`s stay.
    unsafe {
        if (*frame).may_return != ELSEWHERE && stop_assuming_over() {
            recording::unseen(Lost::StackSliced);
        }
        let owner = (*segment_of(frame)).owner;
        let thread = thread::current();
        match thread {
            Some(thread) if ptr::eq(&raw const thread.head, owner) => {
                mark_dead(frame);
                (*frame).exit = 0;
                thread.drop_ended_frames();
                thread.refresh_set_aside();
            }
            _ => return_in_other_segment(frame),
        }
        if let Some(thread) = thread {
            thread.show_context();
        }
    }
}
