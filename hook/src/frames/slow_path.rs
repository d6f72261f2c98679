//! The slow half of the call path: what `call.S` does not do by itself.

use core::ptr;
use core::sync::atomic::{Ordering, compiler_fence};

use chase_format::layout::Node;

use super::{AT_ZERO, DEAD, FRAME, FREE, Frame, MOVED, SEGMENT, WRAPPED, segment_of};
use crate::arch::{add_to_own, current_thread};
use crate::recording::Lost;
use crate::sampling::{self, Choice};
use crate::thread::{self, Thread};
use crate::{clock, loading, process, recording};

/// The slow half of the entry of a call whose countdown is at its end. Most are made samples like the ones before
/// them, by little code: what runs so rarely is in no cache.
///
/// # Safety
/// As for [`enter_slow`].
pub(crate) unsafe extern "C" fn enter_due(slot: u32, sp: usize, why: *mut Frame) -> *mut Frame {
    // SAFETY: that of no thread is never written, and has no countdowns.
    let thread = unsafe { &*current_thread() };
    let has_wrapped = why.addr() == WRAPPED;
    // At once: a handler may come, and jump, at any time.
    let missed = if has_wrapped { sampling::stop_countdown(slot) } else { 0 };
    let due = sampling::note_due(thread, slot, if has_wrapped { 0 } else { sp });
    let top = thread.top.load(Ordering::Relaxed);
    if missed == 0 && !top.is_multiple_of(SEGMENT) && !thread.is_busy() {
        let below = (top - FRAME) as *const Frame;
        // SAFETY: below `top` is a frame, or a segment's link, which has both in the same places.
        let (at, context) = unsafe { ((*below).sp.load(Ordering::Relaxed), (*below).node) };
        if at > sp
            && let Some((node, weight)) =
                sampling::sample_alike(thread, slot, has_wrapped, sp, context)
        {
            sampling::forget_due(thread, &due);
            // SAFETY: the caller vouches for the place.
            return unsafe { thread.enter_frame(node, weight, due.began_ticks, sp) };
        }
    }
    let reason = Reason { why: why.addr(), missed, began_ticks: due.began_ticks };
    // SAFETY: as the caller says.
    let frame = unsafe { enter(slot, reason, sp) };
    sampling::forget_due(thread, &due);
    frame
}

/// The slow half of the entry: whatever the call path found, does the entry from start to end but
/// for the clock. Null: the call can't be recorded.
///
/// # Safety
/// Called by the call path: `sp` is where the return address is; `vain` is null or a frame that was
/// claimed and is not wanted. ([`enter_due`]: [`AT_ZERO`] or [`WRAPPED`].)
pub(crate) unsafe extern "C" fn enter_slow(slot: u32, sp: usize, vain: *mut Frame) -> *mut Frame {
    if !vain.is_null() {
        give_up(vain);
    }
    let began = clock::now();
    // SAFETY: as the caller says.
    let frame = unsafe { enter(slot, Reason { why: 0, missed: 0, began_ticks: 0 }, sp) };
    if let Some(thread) = thread::current() {
        thread.note_slow(clock::now().saturating_sub(began));
    }
    frame
}

/// Why a call takes the slow path.
struct Reason {
    /// 0, [`AT_ZERO`] or [`WRAPPED`].
    why: usize,
    /// Calls that were only counted since the countdown wrapped round.
    missed: u32,
    /// When that began to be found out.
    began_ticks: u64,
}

/// The same.
///
/// # Safety
/// As for [`enter_slow`].
#[inline(never)]
unsafe fn enter(slot: u32, reason: Reason, sp: usize) -> *mut Frame {
    let Some(thread) = thread::current_or_adopt() else {
        sampling::without_thread(slot);
        recording::unseen(Lost::CallWithoutThread);
        return ptr::null_mut();
    };
    if thread.is_busy() {
        // A handler of a synchronous signal, in the middle of a change.
        if reason.why == 0 || !sampling::postpone(thread, slot, thread.innermost_node()) {
            thread.count_untimed();
        }
        return ptr::null_mut();
    }
    loading::catch_up(thread, sp);
    let context = thread.enclosing(sp);
    sampling::credit_counted(thread, slot, reason.missed, context);
    let is_framed = sampling::makes_frames(thread, slot);
    let is_to_be_looked_at = reason.why == WRAPPED && !is_framed;
    let choice = match reason.why {
        AT_ZERO => sampling::sample(thread, slot, sp, context),
        WRAPPED if is_framed => sampling::sample_framed(thread, slot, sp, context),
        WRAPPED => Choice::Timed,
        _ => sampling::begin(thread, slot, sp, context),
    };
    let (node, weight) = match choice {
        Choice::Counted => return ptr::null_mut(),
        Choice::Sample(node, weight) => (node, weight),
        Choice::Timed => (thread.tree.find_or_add(context, slot), 0),
    };
    if node.is_null() {
        recording::unseen(Lost::CallWithoutSpace);
        return ptr::null_mut();
    }
    if sampling::makes_frames(thread, slot) {
        // For the calls that follow.
        thread.tree.find_or_add_framed(context, slot);
    }
    if is_to_be_looked_at {
        sampling::look(thread, slot, sp, context);
    }
    // SAFETY: the caller vouches for the place.
    unsafe { thread.enter_frame(node, weight, reason.began_ticks, sp) }
}

impl Thread {
    /// The frame of a call, which is of `node`; null if there is no room. `weight` is 0 of a call that
    /// counts for itself.
    ///
    /// # Safety
    /// `sp` is where the return address is; the node is this thread's.
    #[inline]
    unsafe fn enter_frame(
        &self,
        node: *mut Node,
        weight: u32,
        began_ticks: u64,
        sp: usize,
    ) -> *mut Frame {
        let frame = self.claim();
        if frame.is_null() {
            recording::unseen(Lost::CallTooDeep);
            if weight == 0 {
                // Counted, and not open: it passes through.
                // SAFETY: the node is this thread's.
                unsafe {
                    (*node).calls += 1;
                    (*node).unwound += 1;
                }
            }
            return ptr::null_mut();
        }
        // SAFETY: the frame was claimed for this call; the caller's stack holds its return address.
        unsafe {
            (*frame).node = node;
            (*frame).weight = 0;
            (*frame).began_ticks = began_ticks;
            (*frame).exit = 0;
            (*frame).return_address = *(sp as *const usize);
            compiler_fence(Ordering::SeqCst);
            (*frame).sp.store(sp, Ordering::Relaxed);
            // A handler may jump out from here on: what has not begun is not taken back.
            compiler_fence(Ordering::SeqCst);
            if weight == 0 {
                (*node).calls += 1;
            } else {
                (*sampling::samples_of(node)).begun += 1;
                compiler_fence(Ordering::SeqCst);
                (*frame).weight = weight;
            }
        }
        frame
    }
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
    // SAFETY: the frame is live, so it and its node are initialised; its owner's `Thread` is there.
    unsafe {
        let node = (*frame).node;
        if (*segment_of(frame)).owner != current
            || !sampling::is_sampled(node)
            || !(*current).is_innermost(frame)
        {
            return leave_rarely(current, frame, now_ticks);
        }
        let thread = &*current;
        let (began_ticks, start_ticks) = ((*frame).began_ticks, (*frame).start_ticks);
        // Ended, in two instructions beside each other: a handler that jumps out from here on, or a
        // cancellation, finds no open call.
        (*frame).sp.store(DEAD, Ordering::Relaxed);
        compiler_fence(Ordering::SeqCst);
        (*sampling::samples_of(node)).ended += 1;
        // (A clock that stepped back makes no time.)
        sampling::record(thread, node, now_ticks.saturating_sub(start_ticks), (*frame).weight);
        thread.leave_innermost(frame);
        sampling::note_spent(thread, began_ticks, start_ticks, now_ticks);
        thread.ask_about(node, start_ticks, now_ticks);
    }
}

/// The same where that is not of a sample, or another frame is on top.
///
/// # Safety
/// As for [`leave_slow`]; `current` is the calling thread's.
#[inline(never)]
unsafe fn leave_rarely(current: *mut Thread, frame: *mut Frame, now_ticks: u64) {
    let current = noticed(current);
    // SAFETY: as in `leave_slow`.
    unsafe {
        let (node, start_ticks) = ((*frame).node, (*frame).start_ticks);
        let ticks = now_ticks.saturating_sub(start_ticks);
        if (*segment_of(frame)).owner != current {
            sampling::time_every_call(node);
            leave_elsewhere(node);
            return give_away(frame, node);
        }
        let thread = &*current;
        if sampling::is_sampled(node) {
            let (weight, began_ticks) = ((*frame).weight, (*frame).began_ticks);
            thread.leave(frame, now_ticks);
            (*sampling::samples_of(node)).ended += 1;
            sampling::record(thread, node, ticks, weight);
            sampling::note_spent(thread, began_ticks, start_ticks, now_ticks);
        } else if thread.is_innermost(frame) {
            // As long as the frame encloses what a handler calls, which is not recorded otherwise if it comes then.
            thread.make_room(node, ticks);
            (*frame).sp.store(FREE, Ordering::Relaxed);
            compiler_fence(Ordering::SeqCst);
            thread.record(node, ticks);
            thread.leave_innermost(frame);
            thread.ask_about(node, start_ticks, now_ticks);
        } else {
            thread.record(node, ticks);
            thread.leave(frame, now_ticks);
            thread.ask_about(node, start_ticks, now_ticks);
        }
    }
}

/// The slow half of the exit of a call that is not timed: drops the frame.
///
/// # Safety
/// As for [`leave_slow`].
pub(crate) unsafe extern "C" fn leave_framed(frame: *mut Frame) {
    let current = noticed(current_thread());
    // SAFETY: as in `leave_slow`.
    unsafe {
        let (node, owner) = ((*frame).node, (*segment_of(frame)).owner);
        if owner == current {
            return (*current).leave(frame, clock::now());
        }
        sampling::time_every_call(node);
        leave_elsewhere(node);
        give_away(frame, node);
    }
}

/// The calling thread, which `current` is; in a fork's child that has not been noticed yet, what it is from now on.
fn noticed(current: *mut Thread) -> *mut Thread {
    // SAFETY: it is the calling thread's, or that of none.
    if unsafe { (*current).is_wiped() } {
        process::notice_fork();
    }
    current_thread()
}

/// Counts a call of another thread that returned here. Most of its time may have been there, and there
/// is no telling.
fn leave_elsewhere(node: *const Node) {
    let Some(thread) = thread::current() else {
        return recording::unseen(Lost::CallWithoutThread);
    };
    let node = thread.tree.translate(node);
    if node.is_null() {
        return recording::unseen(Lost::CallWithoutSpace);
    }
    // SAFETY: the node is this thread's.
    unsafe {
        (*node).calls += 1;
        (*node).unwound += 1;
    }
}

/// Leaves the frame of a call that returned on this thread to its owner, another one.
///
/// # Safety
/// The frame is live and the node its own.
unsafe fn give_away(frame: *mut Frame, node: *mut Node) {
    // SAFETY: the caller vouches for the frame.
    unsafe {
        if (*(*segment_of(frame)).owner).has_ended() {
            sampling::take_back(node, (*frame).weight);
            (*frame).sp.store(DEAD, Ordering::Release);
        } else {
            (*frame).sp.store(MOVED, Ordering::Release);
        }
    }
    if let Some(thread) = thread::current() {
        thread.show_context();
    }
}

/// The call path has recorded a call and moved `top` down, only to see that the frame was not on
/// top any more: takes that back.
///
/// # Safety
/// As for [`leave_slow`]; the frame belongs to the calling thread.
pub(crate) unsafe extern "C" fn leave_moved(frame: *mut Frame) {
    // SAFETY: the frame's owner is the calling thread.
    let thread = unsafe { &*(*segment_of(frame)).owner };
    add_to_own(&thread.top, FRAME);
    thread.leave(frame, clock::now());
}

/// Whether the clock was read when the call began.
///
/// # Safety
/// The frame is live.
pub(super) unsafe fn is_timed(frame: *const Frame) -> bool {
    // SAFETY: a live frame and its node are initialised.
    unsafe { (*frame).weight > 0 || !sampling::is_framed((*frame).node) }
}
