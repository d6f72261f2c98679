//! What is recorded of a sample, and which ones are not believed.

use chase_format::layout::{Node, SQUARES};

use super::policy::{OUTLIER, SAMPLES_PER_CHOICE};
use super::{Counts, SLOT_MASK, Slot, samples_of};
use crate::recording::is_confined;
use crate::thread::Thread;
use crate::{clock, sys};

/// One of this many means may be an interruption, if it also takes as long as that, and so may any that
/// would add much to the total; so many of them or of longer ones are none.
const INTERRUPTION: u64 = 64;
const INTERRUPTION_NS: u64 = 20_000;
const BELIEVED: u8 = 3;
/// Kinds of them: below so many means, from there to the next, and above.
const KINDS: usize = 3;
const LONGER: [u64; KINDS - 1] = [128, 1024];
/// What is held back is kept in this many ticks.
const HELD_UNIT: u64 = 1024;

/// Samples that took so long that an interruption of the whole machine may be in them, which nobody
/// tells. Such a one counts once, until there are more of its kind: then it was the call's own doing,
/// and what was held back is added. So one interruption is not multiplied, and a tail is. As long as it
/// is not known which it was, it makes blocks shorter, and the interval wider.
///
/// Of each kind: that some calls take 30 times as long as the mean tells nothing of one that took 1000
/// times as long. However long ago they were: of a tail of which a sample is rare, all would be held back.
#[derive(Clone, Copy, Default)]
pub(super) struct Suspects {
    /// What they would have added.
    held_back: [u32; KINDS],
    counts: [u8; KINDS],
}

impl Suspects {
    /// One more, with what it would add: what was held back of its kind, in ticks, if it is believed.
    fn add(&mut self, kind: usize, excess: u64) -> Option<u64> {
        self.counts[kind] = self.counts[kind].saturating_add(1);
        let alike = self.counts[kind..].iter().fold(0, |sum: u8, &count| sum.saturating_add(count));
        let before = u64::from(self.held_back[kind]) * HELD_UNIT;
        if alike >= BELIEVED {
            self.held_back[kind] = 0;
            return Some(before);
        }
        let held_back = before.saturating_add(excess) / HELD_UNIT;
        self.held_back[kind] = u32::try_from(held_back).unwrap_or(u32::MAX);
        None
    }
}

/// Records a sample of `ticks` that stands for `weight` calls and was counted as ended.
///
/// # Safety
/// The node is of sampled calls, and the calling thread's.
pub(crate) unsafe fn record(thread: &Thread, node: *mut Node, ticks: u64, weight: u32) {
    let counts = thread.counts.get();
    let ticks = counts.map_or(ticks, |counts| counts.comparable(ticks));
    // SAFETY: the caller vouches for the node, and for what is behind it.
    let (samples, known_weight, total, slot) = unsafe {
        let samples = samples_of(node);
        (samples, (*samples).weight, (*node).total_ticks, (*node).slot & SLOT_MASK)
    };
    let mut judged = Judged { weight, typical: ticks, possible: ticks, held_back: 0 };
    if let Some(counts) = counts
        && let Some(known) = counts.known(slot)
    {
        // Without a division, which takes as long as all the rest.
        if ticks.saturating_mul(known_weight) > total.saturating_mul(OUTLIER) {
            judged = known.judge(counts, ticks, weight, total / known_weight);
        }
        let mut moments = known.moments.get();
        moments.add(judged.possible, u64::from(weight));
        known.moments.set(moments);
    }
    let Judged { weight: own_weight, typical, possible, held_back } = judged;
    let rest = weight - own_weight;
    let pairs = u64::from(weight) * u64::from(weight - 1);
    let squares = pairs.saturating_mul(possible.saturating_mul(possible)) / SQUARES;
    // SAFETY: as above; a handler of the same thread may come in between, and only what tells the
    // precision is not updated by single instructions.
    unsafe {
        let page_refs = (&raw mut (*samples).page_refs).cast();
        let may_add_page = !thread.is_busy();
        thread.tree.count_in_pages(page_refs, node, ticks, u64::from(own_weight), may_add_page);
        if rest > 0 {
            count_rest(thread, node, typical, rest);
        }
        let added = u64::from(own_weight) * ticks + u64::from(rest) * typical + held_back;
        (*node).total_ticks += added;
        (*node).max_ticks = (*node).max_ticks.max(ticks);
        (*samples).weight += u64::from(weight);
        (*samples).pairs += pairs;
        (*samples).pairs_ticks =
            (*samples).pairs_ticks.saturating_add(pairs.saturating_mul(possible));
        (*samples).pairs_squares = (*samples).pairs_squares.saturating_add(squares);
    }
}

/// Those that an interrupted sample stands for are taken to be like earlier ones.
#[cold]
fn count_rest(thread: &Thread, node: *mut Node, typical: u64, rest: u32) {
    thread.tree.count_durations(node, typical, u64::from(rest), !thread.is_busy());
}

/// The least that an interruption takes.
pub(super) fn interruption_ticks(ticks_per_us: u64) -> u64 {
    ticks_per_us * (INTERRUPTION_NS / 1000)
}

/// How a sample counts.
struct Judged {
    /// The calls that it stands for, in ticks of its own.
    weight: u32,
    /// What the others are taken to have taken, in ticks.
    typical: u64,
    /// What they may have taken, as far as is known.
    possible: u64,
    /// What was held back of earlier ones, in ticks.
    held_back: u64,
}

impl Slot {
    /// A sample took many times as long as the mean of those before it.
    #[cold]
    fn judge(&self, counts: &Counts, ticks: u64, weight: u32, mean: u64) -> Judged {
        // Perhaps the calls are not as even as they seemed.
        self.samples.set(SAMPLES_PER_CHOICE);
        let long_ticks = interruption_ticks(clock::ticks_per_us().unwrap_or(0));
        let is_long = ticks >= mean.saturating_mul(INTERRUPTION).max(long_ticks);
        let excess = u64::from(weight - 1).saturating_mul(ticks - mean);
        if !is_long && !self.moments.get().is_much(excess) {
            return Judged { weight, typical: ticks, possible: ticks, held_back: 0 };
        }
        if is_long && was_preempted(counts) {
            return Judged { weight: 1, typical: mean, possible: mean, held_back: 0 };
        }
        let kind = LONGER.iter().filter(|&&means| ticks >= mean.saturating_mul(means)).count();
        let mut suspects = self.suspects.get();
        let believed = suspects.add(kind, excess);
        self.suspects.set(suspects);
        match believed {
            Some(held_back) => Judged { weight, typical: ticks, possible: ticks, held_back },
            None => Judged { weight: 1, typical: mean, possible: ticks, held_back: 0 },
        }
    }
}

/// Whether the kernel has taken the processor away from the calling thread since it was last asked.
fn was_preempted(counts: &Counts) -> bool {
    if is_confined() {
        return false;
    }
    let before = counts.preemptions.replace(sys::preemptions());
    counts.preemptions.get() != before
}
