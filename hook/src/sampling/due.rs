//! What is done about a call whose countdown is at its end, or for which there is none yet.

use core::sync::atomic::Ordering;

use chase_format::layout::{FRAMED, Node, SAMPLED, TIMING_ADAPTIVE, TIMING_COUNT, longest_block};

use super::policy::{self, Plan};
use super::{Choice, ENDING, cost, is_to_be_timed, mode};
use chase_logic::countdown::{LONGEST, counted_since_wrap, until_sample, wrapping_after};

use crate::counts::{Change, Counts, SlotState, time_every_call_of_nobody};
use crate::for_tests::FIRST_LOOK;
use crate::node::{add_calls, add_unwound, samples_of};
use crate::recording::{self, Lost};
use crate::thread::{self, Pending, Thread};
use crate::traits::{EVERY_CALL, SPECIAL, has};

/// The countdown of `slot` is at its end, and there is no [`Thread`] to ask.
pub(crate) fn without_thread(slot: u32) {
    time_every_call_of_nobody(slot);
}

/// Whether calls of `slot` that are not timed get frames.
pub(crate) fn makes_frames(thread: &Thread, slot: u32) -> bool {
    thread.counts.get().is_some_and(|counts| counts.is_framed(slot))
}

/// The countdown of `slot` is at its end while the thread is in the middle of a change: the call, made
/// in `context`, goes untimed, and the next one or a later one does what is due. False if it can't be
/// credited.
pub(crate) fn postpone(thread: &Thread, slot: u32, context: *const Node) -> bool {
    let Some(counts) = thread.counts.get() else { return false };
    if let Some(state) = counts.sampled(slot) {
        counts.set(slot, 1, counts.is_framed(slot));
        // SAFETY: the node is this thread's.
        unsafe { add_calls(state.node.load(Ordering::Relaxed), 1) };
        return true;
    }
    counts.look_after(slot, FIRST_LOOK);
    let node = thread.tree.find(context, slot);
    if node.is_null() {
        return false;
    }
    // SAFETY: as above.
    unsafe {
        add_calls(node, 1);
        add_unwound(node);
    }
    true
}

/// A call of `slot` at `sp` in `context` for which the call path has found no node: its first one, mostly.
pub(crate) fn begin(thread: &Thread, slot: u32, sp: usize, context: *mut Node) -> Choice {
    let Some(counts) = thread.counts.get() else { return Choice::Timed };
    let Some(left) = counts.left(slot) else { return Choice::Timed };
    match mode() {
        TIMING_ADAPTIVE if !has(slot, EVERY_CALL) && counts.state_of(slot).is_none() => {
            // Unless it has been called already.
            if left.load(Ordering::Relaxed) > i16::MIN / 2 {
                left.store(wrapping_after(FIRST_LOOK), Ordering::Relaxed);
            }
            Choice::Timed
        }
        TIMING_COUNT if !has(slot, SPECIAL) => begin_counting(thread, counts, slot, sp, context),
        _ => Choice::Timed,
    }
}

fn begin_counting(
    thread: &Thread,
    counts: &Counts,
    slot: u32,
    sp: usize,
    context: *mut Node,
) -> Choice {
    let node = thread.tree.find_or_add(context, slot | SAMPLED);
    if node.is_null() {
        return Choice::Timed;
    }
    if thread.pending.get() != Pending::NONE || ENDING.load(Ordering::Relaxed) {
        // SAFETY: the node is this thread's.
        unsafe { add_calls(node, 1) };
        return Choice::Counted;
    }
    match counts.make_state(slot) {
        Some(state) if state.claim(node) => {
            let place = until_credit(node);
            let left = until_sample(place, false);
            let change = Change { node, slot, block: place, place, calls: 0, left, framed: false };
            counts.commit(change, 1, sp);
        }
        _ => count_beside(thread, slot, context),
    }
    Choice::Counted
}

/// Counts a call of `slot` that a signal handler makes while other calls of it are being credited: what their node has
/// is about to be overwritten, so this one goes to a node beside it.
fn count_beside(thread: &Thread, slot: u32, context: *mut Node) {
    let beside = thread.tree.find_or_add(context, slot | SAMPLED | FRAMED);
    if beside.is_null() {
        return recording::unseen(Lost::CallWithoutSpace);
    }
    // SAFETY: the node is this thread's.
    unsafe { add_calls(beside, 1) };
}

/// Calls up to the next that is credited, of those of a node that are only counted: few, compared to what it has, so
/// that few are missing when the end is not seen.
fn until_credit(node: *const Node) -> u32 {
    // SAFETY: the node is this thread's.
    longest_block(unsafe { (*node).calls }) as u32
}

/// A call of `slot` at `sp` in `context` is due to be a sample, of calls that are only counted.
pub(crate) fn sample(thread: &Thread, slot: u32, sp: usize, context: *mut Node) -> Choice {
    let Some(counts) = thread.counts.get() else { return Choice::Timed };
    let Some(state) = counts.sampled(slot).filter(|_| !counts.is_framed(slot)) else {
        credit_unnoticed(thread, counts, slot, sp, context);
        return Choice::Timed;
    };
    if mode() == TIMING_COUNT {
        let (block, place) =
            (state.block.load(Ordering::Relaxed), state.place.load(Ordering::Relaxed));
        let node = state.node.load(Ordering::Relaxed);
        let next = until_credit(node);
        let left = until_sample(next, false);
        let change = Change { node, slot, block, place: next, calls: 0, left, framed: false };
        counts.commit(change, place, sp);
        return Choice::Counted;
    }
    make_sample(thread, counts, state, false, sp, context)
}

/// A call of `slot` at `sp` in `context` is due to be a sample, of calls that get frames.
pub(crate) fn sample_framed(thread: &Thread, slot: u32, sp: usize, context: *mut Node) -> Choice {
    let Some(counts) = thread.counts.get() else { return Choice::Timed };
    let Some(state) = counts.sampled(slot) else {
        counts.set_framed(slot, false);
        return Choice::Timed;
    };
    make_sample(thread, counts, state, true, sp, context)
}

fn make_sample(
    thread: &Thread,
    counts: &Counts,
    state: &SlotState,
    framed: bool,
    sp: usize,
    context: *mut Node,
) -> Choice {
    let slot = state.number;
    let block = state.block.load(Ordering::Relaxed);
    let place = state.place.load(Ordering::Relaxed);
    let latest = state.node.load(Ordering::Relaxed);
    let node = sampled_node(thread, slot, framed, context);
    if node.is_null() {
        // No room for the context: this call counts for itself.
        state.block.store(0, Ordering::Relaxed);
        state.place.store(0, Ordering::Relaxed);
        counts.time_every_call(slot);
        counts.set_framed(slot, false);
        if !framed {
            // SAFETY: the node is this thread's.
            unsafe { add_calls(latest, u64::from(place - 1)) };
        }
        return Choice::Timed;
    }
    let Plan { block: next, framed: next_framed } = policy::next(thread, counts, state, context);
    let mut change =
        Change { slot, node, block: next, place: 0, calls: 0, left: 0, framed: next_framed };
    // Unless blocks go on, this one ends here: the sample stands for what it was made of so far.
    let goes_on = next > 0 && next_framed == framed;
    let (weight, rest) = if goes_on { (block, block - place) } else { (place, 0) };
    if next > 0 {
        change.place = counts.random_up_to(next);
        change.left = until_sample(rest + change.place, next_framed);
    } else {
        change.left = wrapping_after(state.interval.get());
    }
    // SAFETY: the node is this thread's, and of sampled calls.
    unsafe { (*samples_of(latest)).adjust = 0 };
    if framed {
        // SAFETY: as above.
        unsafe { add_calls(node, 1) };
    }
    counts.commit(change, if framed { 0 } else { weight }, sp);
    Choice::Sample(node, weight)
}

/// The node of calls of `slot` that are not all timed; null if there is no room.
fn sampled_node(thread: &Thread, slot: u32, framed: bool, context: *mut Node) -> *mut Node {
    if framed {
        thread.tree.find_or_add_framed(context, slot)
    } else {
        thread.tree.find_or_add(context, slot | SAMPLED)
    }
}

/// A call that is due to be a sample.
pub(crate) struct Due {
    /// What was noted before, by the call that a handler has interrupted: its slot, and where it is made.
    outer: (u32, usize),
    /// When the call entered the hook; 0: not measured.
    pub(crate) began_ticks: u64,
}

/// Notes that the call of `slot` at `sp` is due to be a sample, so that a signal handler that jumps out of it before it
/// is one can credit the calls before it. With `sp` 0 there is nothing to credit.
#[inline]
pub(crate) fn note_due(thread: &Thread, slot: u32, sp: usize) -> Due {
    let Some(counts) = thread.counts.get() else { return Due { outer: (0, 0), began_ticks: 0 } };
    let outer = (counts.due_slot.get(), counts.due_sp.get());
    counts.set_due(slot, sp);
    Due { outer, began_ticks: cost::start_measuring(counts) }
}

/// It is a sample, or will not be one.
#[inline]
pub(crate) fn forget_due(thread: &Thread, due: &Due) {
    if let Some(counts) = thread.counts.get() {
        counts.set_due(due.outer.0, due.outer.1);
    }
}

/// The countdown of `slot` has wrapped round: it is below zero again. Gives the number of those that
/// handlers have made since, and that were only counted.
#[inline(never)]
pub(crate) fn stop_countdown(slot: u32) -> u32 {
    let Some(counts) = thread::current().and_then(|thread| thread.counts.get()) else {
        without_thread(slot);
        return 0;
    };
    let Some(left) = counts.left(slot) else { return 0 };
    counted_since_wrap(left.swap(-1, Ordering::Relaxed))
}

/// A countdown wrapped round, and a handler jumped out before that was noticed: what has been counted since,
/// up to the call of `slot` at `sp`, was not timed. Another jump may come at any time.
fn credit_unnoticed(thread: &Thread, counts: &Counts, slot: u32, sp: usize, context: *mut Node) {
    let node = thread.tree.find_or_add(context, slot | SAMPLED);
    if node.is_null() || counts.make_state(slot).is_none() {
        return counts.time_every_call(slot);
    }
    let change = Change { node, slot, block: 0, place: 0, calls: 0, left: -1, framed: false };
    counts.commit(change, LONGEST - 1, sp);
}

/// Credits calls of a slot that were only counted since its countdown wrapped round, from [`stop_countdown`], to the
/// node for those that were not timed.
pub(crate) fn credit_counted(thread: &Thread, slot: u32, calls: u32, context: *mut Node) {
    if calls == 0 {
        return;
    }
    let node = thread.tree.find_or_add(context, slot | SAMPLED);
    if !node.is_null() {
        // SAFETY: the node is this thread's.
        unsafe { add_calls(node, u64::from(calls)) };
    }
}

/// Enough calls of `slot` were timed to look at how it is used, after the latest of them, which is made at `sp`.
pub(crate) fn review(thread: &Thread, slot: u32, sp: usize, context: *mut Node) {
    let Some(counts) = thread.counts.get() else { return };
    if let Some(state) = counts.sampled(slot)
        && counts.left(slot).is_some_and(|left| left.load(Ordering::Relaxed) <= 0)
    {
        counts.credit_prevented(state, -1, sp);
    }
    if mode() != TIMING_ADAPTIVE
        || is_to_be_timed(slot)
        || recording::stopped()
        || ENDING.load(Ordering::Relaxed)
        || thread.pending.get() != Pending::NONE
    {
        return;
    }
    let Some(state) = counts.make_state(slot) else { return };
    if state.block.load(Ordering::Relaxed) > 0 {
        return;
    }
    let Plan { block, framed } = policy::first(thread, counts, state, context);
    if block == 0 {
        return counts.look_after(slot, state.interval.get());
    }
    let node = sampled_node(thread, slot, framed, context);
    if node.is_null() {
        return;
    }
    let place = counts.random_up_to(block);
    let left = until_sample(place, framed);
    counts.commit(Change { node, slot, block, place, calls: 0, left, framed }, 0, sp);
}

impl Thread {
    /// A jump to `target_sp` may leave the middle of a sample's change: makes it, once more or for the
    /// first time. Its values are absolute.
    pub(crate) fn finish_change(&self, target_sp: usize) {
        let Some(counts) = self.counts.get() else { return };
        let due_sp = counts.due_sp.replace(0);
        if (1..target_sp).contains(&counts.change_sp.get()) {
            counts.apply(counts.change.get());
            counts.change_sp.set(0);
        } else if (1..target_sp).contains(&due_sp) && !self.is_busy() {
            self.prevent(counts, counts.due_slot.get(), due_sp);
        }
    }

    /// A jump prevents the call of `slot` at `sp`, which was due to be a sample: credits those before it.
    #[cold]
    fn prevent(&self, counts: &Counts, slot: u32, sp: usize) {
        if counts.left(slot).is_none_or(|left| left.load(Ordering::Relaxed) > 0) {
            return;
        }
        match counts.sampled(slot).filter(|_| !counts.is_framed(slot)) {
            Some(state) => counts.credit_prevented(state, wrapping_after(FIRST_LOOK), sp),
            None => credit_unnoticed(self, counts, slot, sp, self.enclosing(sp)),
        }
    }
}
