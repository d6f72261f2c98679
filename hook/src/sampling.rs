//! Chooses which calls are timed: all, some of the hot ones, or none.
//!
//! Each thread has a countdown per slot, which a stub decrements (`stubs.S`):
//!
//! | countdown | the call is | its next value is set by |
//! | --- | --- | --- |
//! | 2 or more | only counted | the stub |
//! | 1 | a sample, which also stands for those that were only counted | [`sample`] |
//! | 0 or less | timed | the stub |
//! | the lowest value | timed | [`review`] |
//!
//! So zeroed memory means that every call is timed, and no number of calls changes that by itself. The countdown
//! shows how many calls were only counted, until they are credited to a node of the recording. For each (thread,
//! slot), at any moment between two calls:
//!
//! > calls credited + `place` − countdown = calls made
//!
//! where `place` is the position of the next sample in its block.
//!
//! Where calls get frames, the countdown is negative, too: calls are credited as they are made, and not timed. The
//! one at the lowest value is a sample ([`sample_framed`]). Only a thread itself changes its countdowns. When the
//! process ends, the ending thread stores the missing calls of all threads.

mod cost;
mod decide;
mod fast_path;
mod policy;
mod prepare;
mod record;

use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use chase_format::layout::{Node, TIMING_ALL};

pub(crate) use self::cost::{Cost, measure_sample, note_cost, probe, take_measured};
pub(crate) use self::decide::{
    announce_sample, credit_counted, decide_without_node, end_announcement, makes_frames, postpone,
    review, sample, sample_framed, stop_countdown,
};
pub(crate) use self::fast_path::sample_fast;
pub(crate) use self::prepare::{prepare_counted, prepare_framed, prepare_samples};
pub(crate) use self::record::record;
use crate::counts::store_uncredited;
use crate::thread::{self, are_several};
use crate::traits::has;
use chase_logic::traits::{EVERY_CALL, LOCK, PURE};

/// Samples between two choices of the block's length.
pub(crate) const SAMPLES_PER_CHOICE: u32 = 16;

/// `TIMING_*`.
static MODE: AtomicU32 = AtomicU32::new(TIMING_ALL);
/// Whether a companion needs the context of system calls.
static LISTENS: AtomicBool = AtomicBool::new(false);
/// Whether the process is about to end: calls that are only counted from here on would be lost.
static ENDING: AtomicBool = AtomicBool::new(false);

/// How to treat a call.
pub(crate) enum Choice {
    /// Time it; it stands for itself.
    Timed,
    /// Time it; it was credited to this node already, for this many calls.
    Sample(*mut Node, u32),
    /// Don't time it; it was credited.
    Counted,
}

/// Chooses how calls are timed: `TIMING_*`. A companion sees a call without a frame in the context of its caller, so
/// where one `listens`, calls that may make system calls get frames. Called while there is only one thread.
pub(crate) fn choose(mode: u32, listens: bool) {
    MODE.store(mode, Ordering::Relaxed);
    LISTENS.store(listens, Ordering::Relaxed);
}

/// Whether a companion may read contexts.
pub(crate) fn companion_listens() -> bool {
    LISTENS.load(Ordering::Relaxed)
}

/// Whether calls of `slot` need frames to be visible to the companion, whatever they call.
fn is_watched(slot: u32) -> bool {
    companion_listens() && !has(slot, PURE)
}

/// Returns `TIMING_*`.
pub(crate) fn mode() -> u32 {
    MODE.load(Ordering::Relaxed)
}

/// As the process or its image ends, stores in the recording all calls that were only counted. Calls that this thread
/// makes after its exit, in destructors, are all timed.
pub(crate) fn finish(is_exit: bool) {
    if is_exit {
        ENDING.store(true, Ordering::Relaxed);
        if let Some(thread) = thread::current() {
            thread.stop_sampling();
        }
    }
    store_uncredited();
}

/// Whether every call of a slot must be timed, as far as is known without looking at its calls.
fn is_to_be_timed(slot: u32) -> bool {
    has(slot, EVERY_CALL) || are_several() && has(slot, LOCK)
}
