//! Records samples, and decides which ones to trust.

use chase_format::layout::{INTERRUPTION_MEANS, INTERRUPTION_NS, Node};
use chase_logic::moments::{OUTLIER, Pairs};

use super::SAMPLES_PER_CHOICE;
use crate::arch::OwnCounter;
use crate::counts::{Counts, SlotState};
use crate::node::{SLOT_MASK, add_ticks, samples_of};
use crate::sys::is_confined;
use crate::thread::Thread;
use crate::{clock, sys};

/// Records a sample of `ticks` that stands for `weight` calls and was already counted as ended.
///
/// # Safety
/// The node is one of sampled calls, and the calling thread's.
pub(crate) unsafe fn record(thread: &Thread, node: *mut Node, ticks: u64, weight: u32) {
    let counts = thread.counts.get();
    let ticks = counts.map_or(ticks, |counts| counts.comparable(ticks));
    // SAFETY: the caller vouches for the node, and for the sample data behind it.
    let (samples, weight_before, total, slot) = unsafe {
        let samples = samples_of(node);
        (samples, (*samples).weight, (*node).total_ticks, (*node).slot & SLOT_MASK)
    };
    let mut weighed = Weighed { weight, typical: ticks, possible: ticks, held_back: 0 };
    if let Some(counts) = counts
        && let Some(state) = counts.state_of(slot)
    {
        // Compares without a division, which would take as long as all the rest.
        if ticks.saturating_mul(weight_before) > total.saturating_mul(OUTLIER) {
            weighed = weigh_outlier(
                state,
                counts,
                ticks,
                weight,
                total.checked_div(weight_before).unwrap_or(0),
            );
        }
        let mut moments = state.moments.get();
        moments.add(weighed.possible, u64::from(weight));
        state.moments.set(moments);
    }
    let Weighed { weight: own_weight, typical, possible, held_back } = weighed;
    let rest = weight - own_weight;
    let Pairs { pairs, ticks: pairs_ticks, squares } = Pairs::of_sample(weight, possible);
    // SAFETY: as above. A handler of the same thread may come in between; only the fields about precision are not
    // updated by single instructions.
    unsafe {
        let page_refs = (&raw mut (*samples).page_refs).cast();
        let may_add_page = !thread.is_busy();
        thread.tree.count_in_pages(page_refs, node, ticks, u64::from(own_weight), may_add_page);
        if rest > 0 {
            count_rest(thread, node, typical, rest);
        }
        let added = u64::from(own_weight) * ticks + u64::from(rest) * typical + held_back;
        add_ticks(node, added);
        (*node).max_ticks = (*node).max_ticks.max(ticks);
        OwnCounter::at(&raw mut (*samples).weight).add(u64::from(weight));
        OwnCounter::at(&raw mut (*samples).pairs).add(pairs);
        (*samples).pairs_ticks = (*samples).pairs_ticks.saturating_add(pairs_ticks);
        (*samples).pairs_squares = (*samples).pairs_squares.saturating_add(squares);
    }
}

/// Counts the calls that an interrupted sample stands for as ones of the typical duration.
#[cold]
fn count_rest(thread: &Thread, node: *mut Node, typical: u64, rest: u32) {
    thread.tree.count_durations(node, typical, u64::from(rest), !thread.is_busy());
}

/// Returns the minimum duration of an interruption.
pub(super) fn interruption_ticks(ticks_per_us: u64) -> u64 {
    ticks_per_us * (INTERRUPTION_NS / 1000)
}

/// How a sample counts.
struct Weighed {
    /// The number of calls that count with the sample's own duration.
    weight: u32,
    /// The assumed duration of the others, in ticks.
    typical: u64,
    /// The duration that they may have had as far as is known, in ticks.
    possible: u64,
    /// What was held back of earlier samples, in ticks.
    held_back: u64,
}

/// Decides how to count a sample that took many times the mean of those before it.
#[cold]
fn weigh_outlier(
    state: &SlotState,
    counts: &Counts,
    ticks: u64,
    weight: u32,
    mean: u64,
) -> Weighed {
    // Perhaps the calls are not as even as they seemed.
    state.samples.set(SAMPLES_PER_CHOICE);
    let long_ticks = interruption_ticks(clock::ticks_per_us().unwrap_or(0));
    // A shorter one may be an interruption, too, if it would add much to the total.
    let is_long = ticks >= mean.saturating_mul(INTERRUPTION_MEANS).max(long_ticks);
    let excess = u64::from(weight - 1).saturating_mul(ticks - mean);
    if !is_long && !state.moments.get().is_much(excess) {
        return Weighed { weight, typical: ticks, possible: ticks, held_back: 0 };
    }
    if is_long && was_preempted(counts) {
        return Weighed { weight: 1, typical: mean, possible: mean, held_back: 0 };
    }
    let mut suspects = state.suspects.get();
    let believed = suspects.add(ticks, mean, excess);
    state.suspects.set(suspects);
    match believed {
        Some(held_back) => Weighed { weight, typical: ticks, possible: ticks, held_back },
        None => Weighed { weight: 1, typical: mean, possible: ticks, held_back: 0 },
    }
}

/// Whether the kernel has preempted the calling thread since this was last asked.
fn was_preempted(counts: &Counts) -> bool {
    if is_confined() {
        return false;
    }
    let before = counts.preemptions.replace(sys::preemptions());
    counts.preemptions.get() != before
}
