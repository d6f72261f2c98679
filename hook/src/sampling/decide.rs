//! Handles a call whose countdown has ended, or that has none yet.

use core::sync::atomic::Ordering;

use chase_format::layout::{FRAMED, Node, SAMPLED, TIMING_ADAPTIVE, TIMING_COUNT, longest_block};

use super::policy::{self, Plan};
use super::{Choice, ENDING, cost, is_to_be_timed, mode};
use chase_logic::countdown::{LONGEST, counted_since_wrap, until_sample, wrapping_after};

use crate::counts::{Change, Counts, SlotState, time_every_call_without_thread};
use crate::for_tests::FIRST_LOOK;
use crate::node::{add_calls, add_untimed_call, samples_of};
use crate::recording::{self, Lost};
use crate::thread::{self, Thread};
use crate::traits::has;
use chase_logic::pending::Pending;
use chase_logic::traits::{EVERY_CALL, SPECIAL};

/// Whether calls of `slot` that are not timed get frames.
pub(crate) fn makes_frames(thread: &Thread, slot: u32) -> bool {
    thread.counts.get().is_some_and(|counts| counts.is_framed(slot))
}

/// Handles the end of `slot`'s countdown while the thread is in the middle of a change: credits the call, made in
/// `context`, without timing it, and leaves the rest to the next call. Returns false if the call can't be credited.
pub(crate) fn postpone(thread: &Thread, slot: u32, context: *const Node) -> bool {
    let Some(counts) = thread.counts.get() else { return false };
    if let Some(state) = counts.sampled(slot) {
        counts.set_until_sample(slot, 1, counts.is_framed(slot));
        // SAFETY: the node is this thread's.
        unsafe { add_calls(state.node.load(Ordering::Relaxed), 1) };
        return true;
    }
    counts.review_after(slot, FIRST_LOOK);
    let node = thread.tree.find(context, slot);
    if node.is_null() {
        return false;
    }
    // SAFETY: as above.
    unsafe { add_untimed_call(node) };
    true
}

/// Decides about a call of `slot` at `sp` in `context` for which the call path has found no node: mostly the first
/// one.
pub(crate) fn decide_without_node(
    thread: &Thread,
    slot: u32,
    sp: usize,
    context: *mut Node,
) -> Choice {
    let Some(counts) = thread.counts.get() else { return Choice::Timed };
    let Some(remaining) = counts.countdown(slot) else { return Choice::Timed };
    match mode() {
        TIMING_ADAPTIVE if !has(slot, EVERY_CALL) && counts.state_of(slot).is_none() => {
            // Unless calls have been counted already.
            if remaining.load(Ordering::Relaxed) > i16::MIN / 2 {
                remaining.store(wrapping_after(FIRST_LOOK), Ordering::Relaxed);
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
            let remaining = until_sample(place, false);
            let change =
                Change { node, slot, block: place, place, calls: 0, remaining, framed: false };
            counts.commit(change, 1, sp);
        }
        _ => count_beside(thread, slot, context),
    }
    Choice::Counted
}

/// Counts a call of `slot` that a signal handler makes while other calls of the slot are being credited. Their node
/// is about to be overwritten, so this call is counted in another node beside it.
fn count_beside(thread: &Thread, slot: u32, context: *mut Node) {
    let beside = thread.tree.find_or_add(context, slot | SAMPLED | FRAMED);
    if beside.is_null() {
        return recording::unseen(Lost::CallWithoutSpace);
    }
    // SAFETY: the node is this thread's.
    unsafe { add_calls(beside, 1) };
}

/// Returns the number of calls until the next that credits them, of a node whose calls are only counted. It is small
/// relative to the node's calls, so that few are missing if the end is not seen.
fn until_credit(node: *const Node) -> u32 {
    // SAFETY: the node is this thread's.
    longest_block(unsafe { (*node).calls }) as u32
}

/// Decides about a call of `slot` at `sp` in `context` whose countdown has reached zero: it becomes a sample.
pub(crate) fn sample(thread: &Thread, slot: u32, sp: usize, context: *mut Node) -> Choice {
    let Some(counts) = thread.counts.get() else { return Choice::Timed };
    let Some(state) = counts.sampled(slot).filter(|_| !counts.is_framed(slot)) else {
        credit_unnoticed_wrap(thread, counts, slot, sp, context);
        return Choice::Timed;
    };
    if mode() == TIMING_COUNT {
        let (block, place) =
            (state.block.load(Ordering::Relaxed), state.place.load(Ordering::Relaxed));
        let node = state.node.load(Ordering::Relaxed);
        let next = until_credit(node);
        let remaining = until_sample(next, false);
        let change = Change { node, slot, block, place: next, calls: 0, remaining, framed: false };
        counts.commit(change, place, sp);
        return Choice::Counted;
    }
    make_sample(thread, counts, state, false, sp, context)
}

/// Decides about a call of `slot` at `sp` in `context` whose countdown has wrapped around, where calls get frames: it
/// becomes a sample.
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
        Change { slot, node, block: next, place: 0, calls: 0, remaining: 0, framed: next_framed };
    // If the block's kind changes, it ends here: the sample stands for the calls made in it so far.
    let goes_on = next > 0 && next_framed == framed;
    let (weight, rest) = if goes_on { (block, block - place) } else { (place, 0) };
    if next > 0 {
        change.place = counts.random_up_to(next);
        change.remaining = until_sample(rest + change.place, next_framed);
    } else {
        change.remaining = wrapping_after(state.interval.get());
    }
    // SAFETY: the node is this thread's, and one of sampled calls.
    unsafe { (*samples_of(latest)).adjust = 0 };
    if framed {
        // SAFETY: as above.
        unsafe { add_calls(node, 1) };
    }
    counts.commit(change, if framed { 0 } else { weight }, sp);
    Choice::Sample(node, weight)
}

/// Returns the node for calls of `slot` that are not all timed; null if there is no room.
fn sampled_node(thread: &Thread, slot: u32, framed: bool, context: *mut Node) -> *mut Node {
    if framed {
        thread.tree.find_or_add_framed(context, slot)
    } else {
        thread.tree.find_or_add(context, slot | SAMPLED)
    }
}

/// A call that is to become a sample.
pub(crate) struct Announced {
    /// The slot and stack address announced before, by a call that this call's handler has interrupted.
    outer: (u32, usize),
    /// When the call entered the hook; 0 if not measured.
    pub(crate) began_ticks: u64,
}

/// Announces that the call of `slot` at `sp` is to become a sample, so that the calls before it can be credited if a
/// signal handler jumps out first. If `sp` is 0, there is nothing to credit.
#[inline]
pub(crate) fn announce_sample(thread: &Thread, slot: u32, sp: usize) -> Announced {
    let Some(counts) = thread.counts.get() else {
        return Announced { outer: (0, 0), began_ticks: 0 };
    };
    let outer = (counts.announced_slot.get(), counts.announced_sp.get());
    counts.set_announced(slot, sp);
    Announced { outer, began_ticks: cost::start_measuring(counts) }
}

/// Ends the announcement: the call has become a sample, or will not.
#[inline]
pub(crate) fn end_announcement(thread: &Thread, announced: &Announced) {
    if let Some(counts) = thread.counts.get() {
        counts.set_announced(announced.outer.0, announced.outer.1);
    }
}

/// Stops a countdown of `slot` that has wrapped around, by making it negative again. Returns the number of calls that
/// handlers have made since, and that were only counted.
#[inline(never)]
pub(crate) fn stop_countdown(slot: u32) -> u32 {
    let Some(counts) = thread::current().and_then(|thread| thread.counts.get()) else {
        time_every_call_without_thread(slot);
        return 0;
    };
    let Some(remaining) = counts.countdown(slot) else { return 0 };
    counted_since_wrap(remaining.swap(-1, Ordering::Relaxed))
}

/// Credits the calls that were only counted after a countdown had wrapped around and a handler had jumped out before
/// that was noticed, up to the call of `slot` at `sp`. Another jump may come at any time.
fn credit_unnoticed_wrap(
    thread: &Thread,
    counts: &Counts,
    slot: u32,
    sp: usize,
    context: *mut Node,
) {
    let node = thread.tree.find_or_add(context, slot | SAMPLED);
    if node.is_null() || counts.make_state(slot).is_none() {
        return counts.time_every_call(slot);
    }
    let change = Change { node, slot, block: 0, place: 0, calls: 0, remaining: -1, framed: false };
    counts.commit(change, LONGEST - 1, sp);
}

/// Credits calls of a slot that were only counted since its countdown wrapped around, as returned by
/// [`stop_countdown`], to the node for calls that were not timed.
pub(crate) fn credit_counted(thread: &Thread, slot: u32, calls: u32, context: *mut Node) {
    if calls == 0 {
        return;
    }
    let node = thread.tree.find_or_add(context, slot | SAMPLED);
    if node.is_null() {
        return recording::add_unseen(Lost::CallWithoutSpace, u64::from(calls));
    }
    // SAFETY: the node is this thread's.
    unsafe { add_calls(node, u64::from(calls)) };
}

/// Reviews how `slot` is used, once enough calls were timed; the latest of them is made at `sp`.
pub(crate) fn review(thread: &Thread, slot: u32, sp: usize, context: *mut Node) {
    let Some(counts) = thread.counts.get() else { return };
    if let Some(state) = counts.sampled(slot)
        && counts.countdown(slot).is_some_and(|remaining| remaining.load(Ordering::Relaxed) <= 0)
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
        return counts.review_after(slot, state.interval.get());
    }
    let node = sampled_node(thread, slot, framed, context);
    if node.is_null() {
        return;
    }
    let place = counts.random_up_to(block);
    let remaining = until_sample(place, framed);
    counts.commit(Change { node, slot, block, place, calls: 0, remaining, framed }, 0, sp);
}

impl Thread {
    /// Completes a sample's change that a jump to `target_sp` may interrupt. It may have been made already: its
    /// values are absolute.
    pub(crate) fn finish_change(&self, target_sp: usize) {
        let Some(counts) = self.counts.get() else { return };
        let announced_sp = counts.announced_sp.replace(0);
        if (1..target_sp).contains(&counts.change_sp.get()) {
            counts.apply(counts.change.get());
            counts.change_sp.set(0);
        } else if (1..target_sp).contains(&announced_sp) && !self.is_busy() {
            self.credit_before_prevented(counts, counts.announced_slot.get(), announced_sp);
        }
    }

    /// Credits the calls before the call of `slot` at `sp`, which was to become a sample but is prevented by a jump.
    #[cold]
    fn credit_before_prevented(&self, counts: &Counts, slot: u32, sp: usize) {
        if counts.countdown(slot).is_none_or(|remaining| remaining.load(Ordering::Relaxed) > 0) {
            return;
        }
        match counts.sampled(slot).filter(|_| !counts.is_framed(slot)) {
            Some(state) => counts.credit_prevented(state, wrapping_after(FIRST_LOOK), sp),
            None => credit_unnoticed_wrap(self, counts, slot, sp, self.context_at(sp)),
        }
    }
}
