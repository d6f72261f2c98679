//! Which calls are timed: all, some of the hot ones, or none.
//!
//! Each thread has a countdown per slot, and a stub counts it down (`stubs.S`):
//!
//! | countdown | the call is | its next value is set by |
//! | --- | --- | --- |
//! | 2 or more | only counted | the stub |
//! | 1 | a sample, timed for those that were only counted | [`sample`] |
//! | 0 or less | timed | the stub |
//! | the least value | timed | [`look`] |
//!
//! So zeroed memory is right, and no number of calls makes a slot untimed by itself. What was only
//! counted shows in the countdown until it is credited to a node of the recording; for each (thread,
//! slot), at any moment between two calls:
//!
//! > calls credited + `place` − countdown = calls made
//!
//! where `place` is that of the next sample in its block.
//!
//! Where calls get frames, the countdown is below zero, too: they are credited as they are made, and not timed. At
//! the least value there is a sample ([`sample_framed`]).
//! Only its own thread changes a thread's
//! countdowns. At the end of the process, whoever ends it tells the recording what they show.

mod alike;
mod budget;
mod cost;
mod counts;
mod memory;
mod policy;
mod prepare;
mod record;
mod waits;

use core::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, Ordering};

use chase_format::layout::{
    FRAMED, INHERITED, LONGEST_COUNTDOWN, Node, SAMPLED, Samples, TIMING_ADAPTIVE, TIMING_ALL,
    TIMING_COUNT,
};

use crate::arch::STUBS;
use crate::signals::SignalsBlocked;
use crate::thread::{Pending, Thread};
use crate::{recording, thread};

pub(crate) use self::alike::sample_alike;
pub(crate) use self::budget::{begin as keep_budget, pass_by};
pub(crate) use self::cost::{note_cost, note_spent, probe, take_spent};
pub(crate) use self::counts::{COUNTDOWN, Counts, PLACE};
use self::counts::{Change, Slot, after, until_sample};
use self::memory::settle_all;
pub(crate) use self::memory::{
    NO_COUNTS, after_fork_in_child, after_fork_in_parent, before_fork, give_back, no_counts, take,
};
use self::policy::Plan;
pub(crate) use self::policy::SAMPLES_PER_CHOICE;
pub(crate) use self::prepare::{prepare_counted, prepare_framed, prepare_samples};
pub(crate) use self::record::record;
use self::waits::{Waits, waits_of};

/// The part of [`Node::slot`] that is the number of a slot.
pub(crate) const SLOT_MASK: u32 = !(SAMPLED | FRAMED | INHERITED);

/// Whether the hook is built to sample whatever can be, at once, and in frames: tests run programs that
/// are hard to hook with it, whose calls are too few, too long or too uneven otherwise.
const STRESS: bool = cfg!(feature = "stress");
/// Calls of a slot before it is looked at for the first time.
const FIRST_LOOK: u32 = if STRESS { 2 } else { 256 };
/// Most calls from one look to the next.
const LONGEST: u32 = LONGEST_COUNTDOWN as u32;

/// Calls of it are all timed.
const EVERY_CALL: u8 = 1 << 0;
/// It is not ordinary: even where calls are only counted, these are timed.
const SPECIAL: u8 = 1 << 1;
/// It waits for other threads: its calls are all timed once there are any.
const LOCK: u8 = 1 << 2;
/// Something was called inside.
const HAS_CHILDREN: u8 = 1 << 3;

/// It makes no system calls and waits for nothing.
const PURE: u8 = 1 << 4;

/// What is known of each slot, for all threads.
static TRAITS: [AtomicU8; STUBS] = [const { AtomicU8::new(0) }; STUBS];
/// `TIMING_*`.
static MODE: AtomicU32 = AtomicU32::new(TIMING_ALL);
/// Whether a companion wants to know the context of system calls.
static LISTENS: AtomicBool = AtomicBool::new(false);
/// Whether the process has, or had, more than one thread.
static THREADS: AtomicBool = AtomicBool::new(false);

/// Whether the process is about to end: what is only counted from here on would not be told.
static ENDING: AtomicBool = AtomicBool::new(false);

/// What is to be done about a call.
pub(crate) enum Choice {
    /// It is timed and stands for itself.
    Timed,
    /// It is timed, and credited to this node already, for as many calls.
    Sample(*mut Node, u32),
    /// It is credited, and not timed.
    Counted,
}

/// Chooses how calls are timed: `TIMING_*`. Of one without a frame, a companion sees the context of its
/// caller, so where one `listens`, what may make system calls gets frames. Called while there is one
/// thread.
pub(crate) fn choose(mode: u32, listens: bool) {
    MODE.store(mode, Ordering::Relaxed);
    LISTENS.store(listens, Ordering::Relaxed);
    alike::allow(mode == TIMING_ADAPTIVE);
}

/// Whether a companion may look at contexts.
pub(crate) fn companion_listens() -> bool {
    LISTENS.load(Ordering::Relaxed)
}

/// Whether calls of `slot` need frames to be seen, whatever they call.
fn is_watched(slot: u32) -> bool {
    STRESS || companion_listens() && !has(slot, PURE)
}

/// `TIMING_*`.
pub(crate) fn mode() -> u32 {
    MODE.load(Ordering::Relaxed)
}

/// Notes what an import says of its slot, before the slot is used.
pub(crate) fn describe(slot: usize, name: &[u8], is_special: bool) {
    let trait_of = if is_special { SPECIAL | EVERY_CALL } else { 0 };
    let known = trait_of
        | match waits_of(name) {
            Some(Waits::Threads) => LOCK,
            Some(Waits::Anything) => EVERY_CALL,
            Some(Waits::Nothing) => PURE,
            None => 0,
        };
    if let Some(traits) = TRAITS.get(slot) {
        traits.store(known, Ordering::Relaxed);
    }
}

/// Makes a slot's calls like those of another one.
pub(crate) fn describe_twin(slot: usize, of: usize) {
    if let (Some(traits), Some(known)) = (TRAITS.get(slot), TRAITS.get(of)) {
        traits.store(known.load(Ordering::Relaxed), Ordering::Relaxed);
    }
}

/// Whether calls of a slot, as far as is known, neither call others, nor wait, nor are special. (Where a
/// companion wants to know their context, they make no system calls either.)
pub(crate) fn may_be_unhooked(slot: u32) -> bool {
    !has(slot, EVERY_CALL | SPECIAL | LOCK | HAS_CHILDREN)
        && (has(slot, PURE) || !companion_listens())
}

/// From now on every call of the slot of this node is timed, in all threads: a call did not return,
/// or returned on another thread.
pub(crate) fn time_every_call(of: *const Node) {
    note(of, EVERY_CALL);
}

/// Something is called inside a call of the slot of this node.
pub(crate) fn note_child(of: *const Node) {
    note(of, HAS_CHILDREN);
}

fn note(of: *const Node, what: u8) {
    // SAFETY: nodes live as long as the mapping.
    let slot = unsafe { (*of).slot } & SLOT_MASK;
    if let Some(traits) = TRAITS.get(slot as usize)
        && traits.load(Ordering::Relaxed) & what == 0
    {
        traits.fetch_or(what, Ordering::Relaxed);
    }
}

/// `thread` is about to create another one, or to be one of several: locks may be waited for.
pub(crate) fn expect_threads(thread: &Thread) {
    if !THREADS.swap(true, Ordering::Relaxed) {
        thread.stop_sampling();
    }
}

/// Tells the recording of all calls that were only counted, as the process or its image ends. What the
/// calling thread calls after its exit, in destructors, is not only counted.
pub(crate) fn finish(is_exit: bool) {
    if is_exit {
        ENDING.store(true, Ordering::Relaxed);
        if let Some(thread) = thread::current() {
            thread.stop_sampling();
        }
    }
    settle_all();
}

/// Whether the process has, or had, more than one thread.
pub(crate) fn has_threads() -> bool {
    THREADS.load(Ordering::Relaxed)
}

fn has(slot: u32, wanted: u8) -> bool {
    TRAITS.get(slot as usize).is_none_or(|traits| traits.load(Ordering::Relaxed) & wanted != 0)
}

/// Whether every call of a slot is to be timed, as far as is known without looking at its calls.
fn is_to_be_timed(slot: u32) -> bool {
    has(slot, EVERY_CALL) || has_threads() && has(slot, LOCK)
}

/// What is behind a node of sampled calls.
///
/// # Safety
/// The node is one of those.
pub(crate) unsafe fn samples_of(node: *mut Node) -> *mut Samples {
    // SAFETY: it was made together with what is behind it.
    unsafe { node.add(1).cast() }
}

/// Whether a node is that of sampled calls.
///
/// # Safety
/// It is a node.
pub(crate) unsafe fn is_sampled(node: *const Node) -> bool {
    // SAFETY: the caller vouches for the node.
    let slot = unsafe { (*node).slot };
    slot & SAMPLED != 0 && slot & INHERITED == 0
}

/// Whether a node is that of calls which get frames and are not all timed.
///
/// # Safety
/// It is a node.
pub(crate) unsafe fn is_framed(node: *const Node) -> bool {
    // SAFETY: the caller vouches for the node.
    unsafe { is_sampled(node) && (*node).slot & FRAMED != 0 }
}

/// Takes one call, whose frame has this weight, out of the node that it is credited to.
///
/// # Safety
/// The node is one of the calling thread's.
pub(crate) unsafe fn take_back(node: *mut Node, weight: u32) {
    // SAFETY: the caller vouches for the node.
    unsafe {
        // A handler may have jumped out of it before it was counted.
        (*node).calls = (*node).calls.saturating_sub(1);
        if is_sampled(node) && weight > 0 {
            let begun = &raw mut (*samples_of(node)).begun;
            *begun = (*begun).saturating_sub(1);
        }
    }
}

/// The countdown of `slot` is at its end, and there is no [`Thread`] to ask.
pub(crate) fn without_thread(slot: u32) {
    NO_COUNTS.time_every_call(slot);
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
    if let Some(known) = counts.sampled(slot) {
        counts.set(slot, 1, counts.is_framed(slot));
        // SAFETY: the node is this thread's.
        unsafe { (*known.node.load(Ordering::Relaxed)).calls += 1 };
        return true;
    }
    counts.look_after(slot, FIRST_LOOK);
    let node = thread.tree.find(context, slot);
    if node.is_null() {
        return false;
    }
    // SAFETY: as above.
    unsafe {
        (*node).calls += 1;
        (*node).unwound += 1;
    }
    true
}

/// A call of `slot` at `sp` in `context` for which the call path has found no node: its first one, mostly.
pub(crate) fn begin(thread: &Thread, slot: u32, sp: usize, context: *mut Node) -> Choice {
    let Some(counts) = thread.counts.get() else { return Choice::Timed };
    let Some(left) = counts.left(slot) else { return Choice::Timed };
    match mode() {
        TIMING_ADAPTIVE
            if (!has(slot, EVERY_CALL) || budget::is_kept()) && counts.known(slot).is_none() =>
        {
            // Unless it has been called already.
            if left.load(Ordering::Relaxed) > i16::MIN / 2 {
                left.store(after(FIRST_LOOK), Ordering::Relaxed);
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
    // SAFETY: the node is this thread's.
    unsafe { (*node).calls += 1 };
    if thread.pending.get() == Pending::NONE
        && !ENDING.load(Ordering::Relaxed)
        && let Some(known) = counts.know(slot)
        // Otherwise a sample is being made, or was prevented: see `look`.
        && known.block.load(Ordering::Relaxed) == 0
    {
        let place = if budget::is_kept() { FIRST_LOOK } else { LONGEST };
        let left = until_sample(place, false);
        let change = Change { node, slot, block: place, place, calls: 0, left, framed: false };
        counts.make(change, 0, sp);
    }
    Choice::Counted
}

/// A call of `slot` at `sp` in `context` is due to be a sample, of calls that are only counted.
pub(crate) fn sample(thread: &Thread, slot: u32, sp: usize, context: *mut Node) -> Choice {
    let Some(counts) = thread.counts.get() else { return Choice::Timed };
    let Some(known) = counts.sampled(slot).filter(|_| !counts.is_framed(slot)) else {
        credit_unnoticed(thread, counts, slot, sp, context);
        return Choice::Timed;
    };
    if mode() == TIMING_COUNT {
        let (block, place) =
            (known.block.load(Ordering::Relaxed), known.place.load(Ordering::Relaxed));
        let node = known.node.load(Ordering::Relaxed);
        let next = if budget::is_kept() { budget::next_stop(known, place) } else { LONGEST };
        let left = until_sample(next, false);
        let change = Change { node, slot, block, place: next, calls: 0, left, framed: false };
        counts.make(change, place, sp);
        budget::spend_counted(known, place);
        return Choice::Counted;
    }
    make_sample(thread, counts, known, false, sp, context)
}

/// The same, of calls that get frames.
pub(crate) fn sample_framed(thread: &Thread, slot: u32, sp: usize, context: *mut Node) -> Choice {
    let Some(counts) = thread.counts.get() else { return Choice::Timed };
    let Some(known) = counts.sampled(slot) else {
        counts.set_framed(slot, false);
        return Choice::Timed;
    };
    make_sample(thread, counts, known, true, sp, context)
}

fn make_sample(
    thread: &Thread,
    counts: &Counts,
    known: &Slot,
    framed: bool,
    sp: usize,
    context: *mut Node,
) -> Choice {
    let slot = known.number;
    let block = known.block.load(Ordering::Relaxed);
    let place = known.place.load(Ordering::Relaxed);
    let latest = known.node.load(Ordering::Relaxed);
    let node = sampled_node(thread, slot, framed, context);
    if node.is_null() {
        // No room for the context: this call counts for itself.
        known.block.store(0, Ordering::Relaxed);
        counts.time_every_call(slot);
        counts.set_framed(slot, false);
        if !framed {
            // SAFETY: the node is this thread's.
            unsafe { (*latest).calls += u64::from(place - 1) };
        }
        return Choice::Timed;
    }
    let Plan { block: next, framed: next_framed } = policy::next(thread, counts, known, context);
    let mut change =
        Change { slot, node, block: next, place: 0, calls: 0, left: 0, framed: next_framed };
    // Unless blocks go on, this one ends here: the sample stands for what it was made of so far.
    let goes_on = next > 0 && next_framed == framed;
    let (weight, rest) = if goes_on { (block, block - place) } else { (place, 0) };
    if next > 0 {
        change.place = counts.random_up_to(next);
        change.left = until_sample(rest + change.place, next_framed);
    } else {
        change.left = after(known.interval.get());
    }
    // SAFETY: the node is this thread's, and of sampled calls.
    unsafe { (*samples_of(latest)).adjust = 0 };
    if framed {
        // SAFETY: as above.
        unsafe { (*node).calls += 1 };
    }
    counts.make(change, if framed { 0 } else { weight }, sp);
    if budget::is_kept() {
        budget::spend_sampled(known, weight, framed);
    }
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
    /// When it began to be found out; 0: not known.
    pub(crate) began_ticks: u64,
}

/// Notes that the call of `slot` at `sp` is due to be a sample, for who jumps out of it before it is; 0: that
/// nobody is to care.
#[inline]
pub(crate) fn note_due(thread: &Thread, slot: u32, sp: usize) -> Due {
    let Some(counts) = thread.counts.get() else { return Due { outer: (0, 0), began_ticks: 0 } };
    let outer = (counts.due_slot.get(), counts.due_sp.get());
    counts.set_due(slot, sp);
    Due { outer, began_ticks: cost::begin_spending(counts) }
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
    let seen = left.swap(-1, Ordering::Relaxed);
    if seen > 0 { u32::from((i16::MAX - seen).unsigned_abs()) } else { 0 }
}

/// A countdown wrapped round, and a handler jumped out before that was noticed: what has been counted since,
/// up to the call of `slot` at `sp`, was not timed. Another jump may come at any time.
fn credit_unnoticed(thread: &Thread, counts: &Counts, slot: u32, sp: usize, context: *mut Node) {
    let node = thread.tree.find_or_add(context, slot | SAMPLED);
    if node.is_null() || counts.know(slot).is_none() {
        return counts.time_every_call(slot);
    }
    let change = Change { node, slot, block: 0, place: 0, calls: 0, left: -1, framed: false };
    counts.make(change, LONGEST - 1, sp);
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
        unsafe { (*node).calls += u64::from(calls) };
    }
}

/// Enough calls of `slot` were timed to look at how it is used, after the latest of them, which is made at `sp`.
pub(crate) fn look(thread: &Thread, slot: u32, sp: usize, context: *mut Node) {
    let Some(counts) = thread.counts.get() else { return };
    if let Some(known) = counts.sampled(slot)
        && counts.left(slot).is_some_and(|left| left.load(Ordering::Relaxed) <= 0)
    {
        counts.credit_prevented(known, -1, sp);
    }
    if mode() != TIMING_ADAPTIVE
        || is_to_be_timed(slot) && !budget::is_kept()
        || recording::stopped()
        || ENDING.load(Ordering::Relaxed)
        || thread.pending.get() != Pending::NONE
    {
        return;
    }
    let Some(known) = counts.know(slot) else { return };
    if is_to_be_timed(slot) {
        return counts.look_after(slot, budget::next_look(known));
    }
    if known.block.load(Ordering::Relaxed) > 0 {
        return;
    }
    let Plan { block, framed } = policy::first(thread, counts, known, context);
    if block == 0 {
        return counts.look_after(slot, known.interval.get());
    }
    let node = sampled_node(thread, slot, framed, context);
    if node.is_null() {
        return;
    }
    let place = counts.random_up_to(block);
    let left = until_sample(place, framed);
    counts.make(Change { node, slot, block, place, calls: 0, left, framed }, 0, sp);
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
            Some(known) => counts.credit_prevented(known, after(FIRST_LOOK), sp),
            None => credit_unnoticed(self, counts, slot, sp, self.enclosing(sp)),
        }
    }

    /// Credits what was only counted, and times every call until slots are looked at again.
    pub(crate) fn stop_sampling(&self) {
        let Some(counts) = self.counts.get() else { return };
        let _signals = SignalsBlocked::new();
        for known in counts.all_known().filter(|known| known.block.load(Ordering::Relaxed) > 0) {
            let Some(left) = counts.left(known.number) else { continue };
            let left = left.swap(after(FIRST_LOOK), Ordering::Relaxed);
            known.block.store(0, Ordering::Relaxed);
            let missing = known.missing(left, counts.is_framed(known.number));
            counts.set_framed(known.number, false);
            let node = known.node.load(Ordering::Relaxed);
            // SAFETY: the node is this thread's, and of sampled calls.
            unsafe {
                (*node).calls = (*node).calls.wrapping_add_signed(i64::from(missing));
                (*samples_of(node)).adjust = 0;
            }
        }
    }
}
