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
mod due;
mod memory;
mod policy;
mod prepare;
mod record;
mod waits;

use core::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, Ordering};

use chase_format::layout::{
    FRAMED, INHERITED, LONGEST_COUNTDOWN, Node, SAMPLED, Samples, TIMING_ADAPTIVE, TIMING_ALL,
};

use crate::arch::STUBS;
use crate::thread::{self, Thread};

pub(crate) use self::alike::sample_alike;
pub(crate) use self::budget::{begin as keep_budget, pass_by};
pub(crate) use self::cost::{note_cost, note_spent, probe, take_spent};
use self::counts::Slot;
pub(crate) use self::counts::{COUNTDOWN, Counts, PLACE};
pub(crate) use self::due::{
    begin, credit_counted, forget_due, look, makes_frames, note_due, postpone, sample,
    sample_framed, stop_countdown, without_thread,
};
use self::memory::settle_all;
pub(crate) use self::memory::{
    NO_COUNTS, after_fork_in_child, after_fork_in_parent, before_fork, give_back, no_counts,
    rejoin, take,
};
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
