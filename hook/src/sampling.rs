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

mod cost;
mod due;
mod fast_path;
mod policy;
mod prepare;
mod record;

use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use chase_format::layout::{Node, TIMING_ALL};

pub(crate) use self::cost::{Cost, measure_sample, note_cost, probe, take_measured};
pub(crate) use self::due::{
    begin, credit_counted, forget_due, makes_frames, note_due, postpone, review, sample,
    sample_framed, stop_countdown, without_thread,
};
pub(crate) use self::fast_path::sample_fast;
pub(crate) use self::prepare::{prepare_counted, prepare_framed, prepare_samples};
pub(crate) use self::record::record;
use crate::counts::settle_all;
use crate::thread::{self, are_several};
use crate::traits::{EVERY_CALL, LOCK, PURE, has};

/// Samples between two choices of the block.
pub(crate) const SAMPLES_PER_CHOICE: u32 = 16;

/// `TIMING_*`.
static MODE: AtomicU32 = AtomicU32::new(TIMING_ALL);
/// Whether a companion wants to know the context of system calls.
static LISTENS: AtomicBool = AtomicBool::new(false);
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
}

/// Whether a companion may look at contexts.
pub(crate) fn companion_listens() -> bool {
    LISTENS.load(Ordering::Relaxed)
}

/// Whether calls of `slot` need frames to be seen, whatever they call.
fn is_watched(slot: u32) -> bool {
    companion_listens() && !has(slot, PURE)
}

/// `TIMING_*`.
pub(crate) fn mode() -> u32 {
    MODE.load(Ordering::Relaxed)
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

/// Whether every call of a slot is to be timed, as far as is known without looking at its calls.
fn is_to_be_timed(slot: u32) -> bool {
    has(slot, EVERY_CALL) || are_several() && has(slot, LOCK)
}
