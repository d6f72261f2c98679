//! The slow half of the call path: what `call.S` does not do by itself.

use core::ptr;
use core::sync::atomic::Ordering;

use chase_format::layout::Node;

use super::{DEAD, FRAME, Frame, MOVED, SEGMENT, segment_of};
use crate::arch::current_thread;
use crate::recording::Lost;
use crate::{loading, recording, thread};

/// The slow half of the entry: whatever the call path found, does the entry from start to end but
/// for the clock. Null: the call can't be recorded.
///
/// # Safety
/// Called by the call path: `sp` is where the return address is; `vain` is null or a frame that was
/// claimed and is not wanted.
pub(crate) unsafe extern "C" fn enter_slow(
    slot: u32,
    sp: usize,
    rbx: usize,
    vain: *mut Frame,
) -> *mut Frame {
    if !vain.is_null() {
        give_up(vain);
    }
    let Some(thread) = thread::current_or_adopt() else {
        recording::unseen(Lost::CallWithoutThread);
        return ptr::null_mut();
    };
    if thread.is_busy() {
        // A handler of a synchronous signal, in the middle of a change.
        thread.count_untimed();
        return ptr::null_mut();
    }
    loading::catch_up(thread, sp);
    let context = thread.enclosing(sp);
    let node = thread.tree.find_or_add(context, slot);
    if node.is_null() {
        recording::unseen(Lost::CallWithoutSpace);
        return ptr::null_mut();
    }
    let frame = thread.claim();
    if frame.is_null() {
        recording::unseen(Lost::CallTooDeep);
        return ptr::null_mut();
    }
    // SAFETY: the frame was claimed for this call; the caller's stack holds its return address.
    unsafe {
        (*frame).node = node;
        (*frame).sp.store(sp, Ordering::Relaxed);
        (*frame).saved_rbx = rbx;
        (*frame).return_address = *(sp as *const usize);
        (*node).calls += 1;
    }
    frame
}

/// The call path claimed this frame after a signal handler had switched stacks in the middle of its
/// look-up: it is not the one that it looked at.
fn give_up(vain: *mut Frame) {
    if !(vain as usize).is_multiple_of(SEGMENT) {
        // SAFETY: the call path claimed it for this thread.
        unsafe { (*vain).sp.store(DEAD, Ordering::Relaxed) };
    } else if let Some(thread) = thread::current() {
        thread.move_top(vain as usize + FRAME, vain as usize);
    }
}

/// The slow half of the exit: records the call and drops the frame.
///
/// # Safety
/// Called by the call path, with a frame that was live and has just returned.
pub(crate) unsafe extern "C" fn leave_slow(frame: *mut Frame, now_ticks: u64) {
    let current = current_thread();
    // SAFETY: the frame is live, so it and its node are initialised.
    unsafe {
        // A clock that stepped back makes no time.
        let (node, ticks) = ((*frame).node, now_ticks.saturating_sub((*frame).start_ticks));
        let owner = (*segment_of(frame)).owner;
        if owner != current {
            leave_elsewhere(node, ticks);
            if (*owner).has_ended() {
                (*node).calls -= 1;
                (*frame).sp.store(DEAD, Ordering::Release);
            } else {
                (*frame).sp.store(MOVED, Ordering::Release);
            }
            return;
        }
        let thread = &*current;
        thread.record(node, ticks);
        thread.leave(frame);
    }
}

fn leave_elsewhere(node: *const Node, ticks: u64) {
    let Some(thread) = thread::current() else {
        return recording::unseen(Lost::CallWithoutThread);
    };
    let node = thread.tree.translate(node);
    if node.is_null() {
        return recording::unseen(Lost::CallWithoutSpace);
    }
    // SAFETY: the node is this thread's.
    unsafe { (*node).calls += 1 };
    thread.record(node, ticks);
}

/// The call path has recorded a call and moved `top` down, only to see that the frame was not on
/// top any more: takes that back.
///
/// # Safety
/// As for [`leave_slow`]; the frame belongs to the calling thread.
pub(crate) unsafe extern "C" fn leave_moved(frame: *mut Frame) {
    // SAFETY: the frame's owner is the calling thread.
    let thread = unsafe { &*(*segment_of(frame)).owner };
    thread.top.fetch_add(FRAME, Ordering::Relaxed);
    thread.leave(frame);
}
