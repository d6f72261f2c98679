//! The slow half of the call path: everything that `call.S` leaves to Rust code.

use core::ptr;
use core::sync::atomic::{Ordering, compiler_fence};

use chase_format::layout::{INHERITED, Node};

use crate::abi::{AT_ZERO, DEAD, FRAME, FREE, Frame, MOVED, SEGMENT, WRAPPED, segment_of};
use crate::arch::{OwnCounter, add_to_own};
use crate::frames::return_from_set_aside;
use crate::node::{SLOT_MASK, add_calls, add_untimed_call, is_sampled, samples_of, subtract_call};
use crate::recording::Lost;
use crate::sampling::{self, Choice};
use crate::segments::is_set_aside;
use crate::thread::{self, LONG_TICKS, Thread, current_or_nobody, text_limit};
use crate::thread_life::current_or_adopt;
use crate::traits::time_every_call;
use crate::tree::{Kept, Text, has_text};
use crate::{arguments, clock, cost, counts, loading, process, recording, sites, sys};

/// The slow half of the entry of a call whose countdown has ended. Mostly it takes a sample just like the one before,
/// by little code: code that runs so rarely is in no cache.
///
/// # Safety
/// As for [`enter_slow`].
pub(crate) unsafe extern "C" fn enter_counted_down(
    slot: u32,
    sp: usize,
    why: *mut Frame,
) -> *mut Frame {
    // (The placeholder for threads without a `Thread` is never written to, and has no countdowns.)
    let thread = current_or_nobody();
    let has_wrapped = why.addr() == WRAPPED;
    // Before anything else: a signal handler may come, and jump out, at any time.
    let missed = if has_wrapped { sampling::stop_countdown(slot) } else { 0 };
    let announced = sampling::announce_sample(thread, slot, if has_wrapped { 0 } else { sp });
    let top = thread.head.top.load(Ordering::Relaxed);
    if missed == 0 && !top.is_multiple_of(SEGMENT) && !thread.is_busy() {
        let below = (top - FRAME) as *const Frame;
        // SAFETY: below `top` is a frame or a segment's header, which have both fields at the same offsets.
        let (at, context) = unsafe { ((*below).sp.load(Ordering::Relaxed), (*below).node) };
        if at > sp
            && let Some((node, weight)) =
                sampling::sample_fast(thread, slot, has_wrapped, sp, context)
        {
            sampling::end_announcement(thread, &announced);
            // SAFETY: the caller vouches for the place.
            return unsafe {
                enter_frame(thread, node, weight, announced.began_ticks, (sp, context))
            };
        }
    }
    let reason = Reason { why: why.addr(), missed, began_ticks: announced.began_ticks };
    // SAFETY: as the caller says.
    let frame = unsafe { enter(slot, reason, sp) };
    loading::load_entered(thread, sp);
    sampling::end_announcement(thread, &announced);
    frame
}

/// The slow half of the entry: does the whole entry except for reading the clock, whatever the call path has found.
/// Returns null if the call can't be recorded.
///
/// # Safety
/// Called by the call path: `sp` is the address of the return address; `unwanted` is null, or a frame that was
/// claimed for this call but is not the one that the call path had looked at. ([`enter_counted_down`]: [`AT_ZERO`] or
/// [`WRAPPED`].)
pub(crate) unsafe extern "C" fn enter_slow(
    slot: u32,
    sp: usize,
    unwanted: *mut Frame,
) -> *mut Frame {
    if !unwanted.is_null() {
        give_back(unwanted);
    }
    let began = clock::now();
    // SAFETY: as the caller says.
    let frame = unsafe { enter(slot, Reason { why: 0, missed: 0, began_ticks: 0 }, sp) };
    let Some(thread) = thread::current() else { return frame };
    loading::load_entered(thread, sp);
    // (Where all calls come here, that is part of what a call costs, as measured at the start.)
    if !sites::are_on() {
        thread.note_slow(cost::own_ticks(clock::now().saturating_sub(began)));
    }
    frame
}

/// Why a call takes the slow path.
struct Reason {
    /// 0, [`AT_ZERO`] or [`WRAPPED`].
    why: usize,
    /// Calls that were only counted since the countdown wrapped around.
    missed: u32,
    /// When the call entered the hook; 0 if this was not measured.
    began_ticks: u64,
}

/// Does the whole entry of a call except for reading the clock.
///
/// # Safety
/// As for [`enter_slow`].
#[inline(never)]
unsafe fn enter(slot: u32, reason: Reason, sp: usize) -> *mut Frame {
    let Some(thread) = current_or_adopt() else {
        counts::time_every_call_without_thread(slot);
        recording::unseen(Lost::CallWithoutThread);
        return ptr::null_mut();
    };
    if thread.is_busy() {
        // The handler of a synchronous signal, in the middle of a change.
        let is_credited =
            reason.why != 0 && sampling::postpone(thread, slot, thread.innermost_node());
        thread.count_untimed(u64::from(reason.missed) + u64::from(!is_credited));
        return ptr::null_mut();
    }
    process::catch_up(thread, sp);
    if thread.is_left_out() {
        thread.pass_calls(slot);
        return ptr::null_mut();
    }
    let context = thread.context_at(sp);
    sampling::credit_counted(thread, slot, reason.missed, context);
    let is_framed = sampling::makes_frames(thread, slot);
    let is_to_be_looked_at = reason.why == WRAPPED && !is_framed;
    let choice = match reason.why {
        AT_ZERO => sampling::sample(thread, slot, sp, context),
        WRAPPED if is_framed => sampling::sample_framed(thread, slot, sp, context),
        WRAPPED => Choice::Timed,
        _ => sampling::decide_without_node(thread, slot, sp, context),
    };
    let (node, weight) = match choice {
        Choice::Counted => return ptr::null_mut(),
        Choice::Sample(node, weight) => (node, weight),
        Choice::Timed => {
            // SAFETY: the caller vouches for the place.
            let number = sites::number_of(slot, unsafe { *(sp as *const usize) });
            (thread.tree.find_or_add(context, number), 0)
        }
    };
    if node.is_null() {
        recording::unseen(Lost::CallWithoutSpace);
        return ptr::null_mut();
    }
    if sampling::makes_frames(thread, slot) {
        // The calls that follow will look this node up.
        thread.tree.find_or_add_framed(context, slot);
    }
    if is_to_be_looked_at {
        sampling::review(thread, slot, sp, context);
        // Of calls that are all timed, one in many comes here.
        // SAFETY: the caller vouches for the place; the node is this thread's.
        unsafe { thread.note_caller(node, *(sp as *const usize), weight.max(1)) };
    }
    // SAFETY: the caller vouches for the place.
    unsafe { enter_frame(thread, node, weight, reason.began_ticks, (sp, context)) }
}

/// Claims and fills the frame of a call of `node`; returns null if there is no room. `weight` is 0 if the call stands
/// only for itself. Sets the lowest bit of the returned address if the call is kept with its argument.
///
/// # Safety
/// The return address is at `sp`, and the saved registers are below it; both nodes are the thread's, `context` is the
/// caller's.
#[inline]
unsafe fn enter_frame(
    thread: &Thread,
    node: *mut Node,
    weight: u32,
    began_ticks: u64,
    (sp, context): (usize, *mut Node),
) -> *mut Frame {
    let frame = thread.claim();
    if frame.is_null() {
        recording::unseen(Lost::CallTooDeep);
        if weight == 0 {
            // Counted, but not open: the function is called without a frame.
            // SAFETY: the node is this thread's.
            unsafe { add_untimed_call(node) };
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
        // From here on a handler may jump out: a call that has not begun is not subtracted then.
        compiler_fence(Ordering::SeqCst);
        if weight == 0 {
            add_calls(node, 1);
        } else {
            OwnCounter::at(&raw mut (*samples_of(node)).begun).add(1);
            compiler_fence(Ordering::SeqCst);
            (*frame).weight = weight;
        }
        let slot = (*node).slot & SLOT_MASK;
        if arguments::is_text(slot) {
            if weight == 0 {
                (*frame).began_ticks = arguments::text(slot, sp) as u64;
            }
        } else if arguments::has(slot)
            && let Some(kept) = thread.tree.note_argument(node, context, weight.max(1), sp)
        {
            (*frame).may_return = kept.place();
            return frame.map_addr(|address| address | 1);
        }
    }
    frame
}

/// Releases a frame that the call path claimed after a signal handler had switched stacks during its look-up, so that
/// it is not the frame that it had looked at.
fn give_back(unwanted: *mut Frame) {
    if !(unwanted as usize).is_multiple_of(SEGMENT) {
        // SAFETY: the call path claimed it for this thread.
        unsafe { (*unwanted).sp.store(DEAD, Ordering::Relaxed) };
    } else if let Some(thread) = thread::current() {
        thread.move_top(unwanted as usize + FRAME, unwanted as usize);
    }
}

/// The slow half of the exit: records the call and releases the frame.
///
/// # Safety
/// Called by the call path, with a live frame whose call has just returned.
pub(crate) unsafe extern "C" fn leave_slow(frame: *mut Frame, now_ticks: u64) {
    let thread = current_or_nobody();
    // SAFETY: the frame is live, so it and its node are initialised; its owner's `Thread` is there.
    unsafe {
        let node = (*frame).node;
        if !is_own(thread, frame) || !thread.is_innermost(frame) {
            return leave_uncommon(thread, frame, now_ticks);
        }
        // What follows is no time of the call.
        Thread::show_caller(frame);
        if !is_sampled(node) {
            return leave_uncommon(thread, frame, now_ticks);
        }
        let (began_ticks, start_ticks) = ((*frame).began_ticks, (*frame).start_ticks);
        // Marks the call as ended by two adjacent instructions: a handler that jumps out from here on, or a
        // cancellation, finds no open call.
        (*frame).sp.store(DEAD, Ordering::Relaxed);
        compiler_fence(Ordering::SeqCst);
        OwnCounter::at(&raw mut (*samples_of(node)).ended).add(1);
        // (A clock that stepped back yields no duration.)
        let (weight, address) = ((*frame).weight, (*frame).return_address);
        sampling::record(thread, node, now_ticks.saturating_sub(start_ticks), weight);
        thread.leave_innermost(frame);
        thread.note_caller(node, address, weight);
        sampling::measure_sample(thread, began_ticks, start_ticks, now_ticks);
        thread.note_end(node, start_ticks, now_ticks);
    }
}

/// Records an event for which the current chunk has no space. The call itself is recorded already, and its frame is
/// still on top.
///
/// # Safety
/// Called by the call path. The node is of the calling thread.
pub(crate) unsafe extern "C" fn note_event(node: *mut Node, start_ticks: u64, ticks: u64) {
    let thread = current_or_nobody();
    thread.note_event(node, start_ticks, ticks);
}

/// The slow half of the exit of a call that is kept with its argument.
///
/// # Safety
/// As for [`leave_slow`].
pub(crate) unsafe extern "C" fn leave_kept(frame: *mut Frame, now_ticks: u64) {
    let thread = current_or_nobody();
    // SAFETY: the frame is live, and so is its node. In a fork's child that gets a recording of its own meanwhile, the base
    // differs.
    unsafe {
        let base = recording::base();
        let is_kept = is_own(thread, frame) && (*(*frame).node).slot & INHERITED == 0;
        let (place, ticks) = ((*frame).may_return, now_ticks.saturating_sub((*frame).start_ticks));
        leave_slow(frame, now_ticks);
        if is_kept && ptr::eq(base, recording::base()) {
            Kept::at(place).end(ticks);
        }
    }
}

/// The slow half of the exit of a call that is not a sample, or whose frame is not the top one.
///
/// # Safety
/// As for [`leave_slow`]; `thread` is the calling thread's.
#[inline(never)]
unsafe fn leave_uncommon(thread: &Thread, frame: *mut Frame, now_ticks: u64) {
    let thread = current_after_fork(thread);
    // SAFETY: as in `leave_slow`.
    unsafe {
        let (node, start_ticks) = ((*frame).node, (*frame).start_ticks);
        let ticks = now_ticks.saturating_sub(start_ticks);
        if !is_own(thread, frame) {
            return leave_on_other_thread(frame, node);
        }
        if is_sampled(node) {
            let (weight, began_ticks) = ((*frame).weight, (*frame).began_ticks);
            let address = (*frame).return_address;
            thread.leave(frame, now_ticks);
            OwnCounter::at(&raw mut (*samples_of(node)).ended).add(1);
            sampling::record(thread, node, ticks, weight);
            thread.note_caller(node, address, weight);
            sampling::measure_sample(thread, began_ticks, start_ticks, now_ticks);
        } else if thread.is_innermost(frame) {
            // While the frame still encloses what a signal handler calls: a handler that comes later, before the
            // frame is released, is not recorded.
            thread.make_room(node, ticks);
            (*frame).sp.store(FREE, Ordering::Relaxed);
            compiler_fence(Ordering::SeqCst);
            thread.record(node, ticks);
            let (text, address) = ((*frame).began_ticks as usize, (*frame).return_address);
            thread.leave_innermost(frame);
            thread.note_end(node, start_ticks, now_ticks);
            if ticks >= LONG_TICKS {
                note_long(thread, node, (address, text), ticks);
            }
        } else {
            thread.record(node, ticks);
            thread.leave(frame, now_ticks);
            thread.note_end(node, start_ticks, now_ticks);
        }
    }
}

/// Records from where a long call of `node` was made, which has returned; and the text that it was passed, at this address, if it is
/// a call of a function with a text.
///
/// # Safety
/// The node is the thread's.
#[cold]
#[inline(never)]
unsafe fn note_long(thread: &Thread, node: *mut Node, (address, text): (usize, usize), ticks: u64) {
    let began = clock::now();
    // SAFETY: the caller vouches for the node.
    unsafe {
        thread.note_long_caller(node, address, ticks);
        let is_read = ticks >= text_limit() && !thread.is_busy() && !sys::is_confined();
        if is_read
            && has_text(node)
            && let Some(text) = Text::copy(text)
            && thread.tree.note_text(node, &text, ticks)
        {
            // That may take long itself, which must not be attributed to the next long call.
            thread.ask_between();
        }
    }
    thread.note_slow(cost::own_ticks(clock::now().saturating_sub(began)));
}

/// The slow half of the exit of a call that is not timed: releases the frame.
///
/// # Safety
/// As for [`leave_slow`].
pub(crate) unsafe extern "C" fn leave_framed(frame: *mut Frame) {
    let thread = current_after_fork(current_or_nobody());
    // SAFETY: as in `leave_slow`.
    unsafe {
        let node = (*frame).node;
        if is_own(thread, frame) {
            return thread.leave(frame, clock::now());
        }
        leave_on_other_thread(frame, node);
    }
}

/// The slow half of the exit of a call whose frame belongs to another thread.
///
/// # Safety
/// As for [`leave_slow`]; the node is the frame's.
unsafe fn leave_on_other_thread(frame: *mut Frame, node: *mut Node) {
    // SAFETY: as the caller says.
    if !unsafe { hand_to_owner(frame, node) } {
        return;
    }
    // (Otherwise chase left the process during the call.)
    if recording::holds(node.addr()) {
        // SAFETY: as the caller says.
        time_every_call(node);
        count_call_of_other_thread(node);
    }
    if let Some(thread) = thread::current() {
        thread.show_context();
    }
}

/// Whether a frame belongs to a thread.
///
/// # Safety
/// The frame is live.
unsafe fn is_own(thread: &Thread, frame: *const Frame) -> bool {
    // SAFETY: the caller vouches for the frame.
    ptr::eq(unsafe { (*segment_of(frame)).owner }, &raw const thread.head)
}

/// Returns the calling thread, given as `thread`. In a fork's child, handles the fork first if nobody has yet.
fn current_after_fork(thread: &Thread) -> &'static Thread {
    if thread.is_wiped() {
        process::notice_fork();
    }
    current_or_nobody()
}

/// Counts a call that began on another thread and returned on this one. Its duration is not recorded, since it is
/// unknown how much of it was on which thread.
fn count_call_of_other_thread(node: *const Node) {
    let Some(thread) = thread::current().filter(|thread| !thread.is_left_out()) else {
        return recording::unseen(Lost::CallWithoutThread);
    };
    let node = thread.tree.translate(node);
    if node.is_null() {
        return recording::unseen(Lost::CallWithoutSpace);
    }
    // SAFETY: the node is this thread's.
    unsafe { add_untimed_call(node) };
}

/// Returns a frame whose call returned on this thread to its owner, another thread. Returns false if the owner has set it aside
/// meanwhile, and so has accounted for the call; it may have given the segment back, too.
///
/// # Safety
/// The frame was live when its call returned, and `node` is its node.
unsafe fn hand_to_owner(frame: *mut Frame, node: *mut Node) -> bool {
    // SAFETY: the caller vouches for the frame. One that is set aside keeps what its call needs to return.
    unsafe {
        if is_set_aside(frame) || (*segment_of(frame)).owner.is_null() {
            return_from_set_aside(frame);
            return false;
        }
        if owner_of(frame).has_ended() {
            subtract_call(node, (*frame).weight);
            (*frame).sp.store(DEAD, Ordering::Release);
        } else {
            (*frame).sp.store(MOVED, Ordering::Release);
        }
    }
    true
}

/// Undoes the call path's release of a frame: after it had recorded the call and moved `top` down, it found that the
/// frame was not on top any more.
///
/// # Safety
/// As for [`leave_slow`]; the frame belongs to the calling thread.
pub(crate) unsafe extern "C" fn leave_moved(frame: *mut Frame) {
    // SAFETY: the frame's owner is the calling thread.
    let thread = unsafe { owner_of(frame) };
    add_to_own(&thread.head.top, FRAME);
    thread.leave(frame, clock::now());
}

/// Returns the thread that a frame belongs to.
///
/// # Safety
/// The frame is live.
unsafe fn owner_of(frame: *const Frame) -> &'static Thread {
    // SAFETY: the caller vouches for the frame. Its owner's `Thread` exists, and begins with its head.
    unsafe { &*(*segment_of(frame)).owner.cast() }
}

/// The exit of a frame that was set aside because its call seemed never to return.
///
/// # Safety
/// Called by the call path, with a frame that was set aside and whose call has just returned.
pub(crate) unsafe extern "C" fn leave_set_aside(frame: *mut Frame) {
    if thread::current().is_some_and(Thread::is_wiped) {
        process::notice_fork();
    }
    // SAFETY: as the caller says.
    unsafe { return_from_set_aside(frame) };
}
