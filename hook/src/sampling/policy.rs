//! Which slots are sampled, and how long their blocks are.
//!
//! Only calls that are many, short and even, and that call next to nothing: where those are all
//! timed, the timing takes longer than they do. (What an untimed call calls is in the context of its
//! caller.) Integers only: floating point would change the application's exception flags.
//!
//! With one random call out of each block of N timed, the standard error of the total of n calls is
//! at most `√(N·n) · σ`, where σ is the standard deviation of a call. It may be a fraction ε of the
//! total, or a fraction δ of the thread's time so far, T. So the longest block is the greater of
//! `n·ε²·mean²/σ²` and `(δ·T)²/(n·σ²)`: heavy tails keep blocks short, and blocks grow with time. They
//! are chosen from what is known before a block begins, so the estimate stays unbiased whatever the
//! order of the calls is.

use core::sync::atomic::Ordering;

use chase_format::histogram::{PAGE_BUCKETS, PAGES, bucket_middle};
use chase_format::layout::{Node, SAMPLED, SQUARES};

use super::{
    Counts, FIRST_LOOK, HAS_CHILDREN, LONGEST, Slot, has, is_sampled, is_to_be_timed, samples_of,
};
use crate::recording::is_confined;
use crate::thread::{Pending, Thread};
use crate::tree::node_at;
use crate::{clock, recording, sys};

/// Longest block: so few calls are missing where a process is killed.
const LONGEST_BLOCK: u64 = 256;
/// Shortest: a sample costs as much as several timed calls.
const SHORTEST_BLOCK: u64 = 8;
/// 1/ε² for a standard error of 2 % of the total, or 1/δ for one of 0.02 % of the thread's time.
const PRECISION: u64 = 2_500;
const PRECISION_OF_LIFE: u64 = 5_000;
/// A thread is taken to live as long at least: an error of 20 µs is nobody's concern.
const LEAST_LIFE_US: u64 = 100_000;
/// As many calls, at least, for one that is made inside of them.
const CALLS_PER_CHILD: u64 = 1024;
/// The least cv² that is believed, as 1/x: clock reads and buckets are no finer.
const LEAST_SPREAD: u64 = 100;
/// Samples between two choices of the block: while it grows, and once it is the longest.
pub(crate) const SAMPLES_PER_CHOICE: u32 = 16;
const SAMPLES_PER_CHECK: u32 = 64;
/// Calls are many at this many ns from one to the next or less, and short at this many each.
const MANY_NS: u64 = 10_000;
const SHORT_NS: u64 = 1_000;
/// A call that is this many means long is looked at.
const OUTLIER: u64 = 16;
/// One of this many means may be an interruption, if it also takes as long as that.
const INTERRUPTION: u64 = 64;
const INTERRUPTION_NS: u64 = 20_000;

/// Length of the first block of a slot of which every call was timed so far; 0: they are not to be
/// sampled, or not yet. Sets when to look again.
pub(super) fn first_block(
    thread: &Thread,
    counts: &Counts,
    known: &Slot,
    context: *mut Node,
) -> u32 {
    let now = clock::now();
    let elapsed = now.wrapping_sub(known.since_ticks.replace(now));
    let calls = known.interval.replace(FIRST_LOOK);
    let Some(ticks_per_us) = clock::ticks_per_us() else { return 0 };
    let many = calls > 0 && elapsed / u64::from(calls) * 1000 <= MANY_NS * ticks_per_us;
    if !many {
        known.interval.set(if calls == 0 { FIRST_LOOK } else { (calls * 2).min(LONGEST) });
        return 0;
    }
    let block = block(thread, counts, known.number, context, ticks_per_us);
    if block == 0 {
        known.interval.set((calls * 2).min(LONGEST));
    }
    block
}

/// Length of the next block of a slot that is sampled; 0: every call is to be timed from now on.
pub(super) fn next_block(
    thread: &Thread,
    counts: &Counts,
    known: &Slot,
    context: *mut Node,
) -> u32 {
    if is_to_be_timed(known.number) || recording::stopped() || thread.pending.get() != Pending::NONE
    {
        known.interval.set(LONGEST);
        return 0;
    }
    let samples = known.samples.get() + 1;
    let block_now = known.block.load(Ordering::Relaxed);
    let is_longest = u64::from(block_now) == LONGEST_BLOCK;
    if samples < if is_longest { SAMPLES_PER_CHECK } else { SAMPLES_PER_CHOICE } {
        known.samples.set(samples);
        return block_now;
    }
    known.samples.set(0);
    let Some(ticks_per_us) = clock::ticks_per_us() else { return 0 };
    known.interval.set(FIRST_LOOK);
    block(thread, counts, known.number, context, ticks_per_us)
}

/// The longest block that is precise enough, by what is known of the slot in this context.
fn block(
    thread: &Thread,
    counts: &Counts,
    slot: u32,
    context: *mut Node,
    ticks_per_us: u64,
) -> u32 {
    let mut durations = Durations { pages: [[0; PAGES]; 2] };
    let nodes = [slot, slot | SAMPLED].map(|key| thread.tree.find(context, key));
    for (which, node) in nodes.into_iter().enumerate() {
        if !node.is_null() {
            // SAFETY: nodes live as long as the mapping.
            durations.pages[which] = unsafe {
                if is_sampled(node) { (*samples_of(node)).page_refs } else { (*node).page_refs }
            };
        }
    }
    if has(slot, HAS_CHILDREN) && !durations.hardly_call(thread, nodes) {
        return 0;
    }
    let longest = |preemptions| {
        let moments = durations.moments(preemptions)?;
        Some(moments.longest_block(thread, ticks_per_us))
    };
    let block = match longest(0) {
        // Perhaps because the kernel took the processor away, which takes longer to find out.
        Some(block) if block < LONGEST_BLOCK => longest(preemptions(counts)),
        block => block,
    };
    block.filter(|&block| block >= SHORTEST_BLOCK).unwrap_or(0) as u32
}

impl Moments {
    /// The longest block that is precise enough; 0 if the calls are not short.
    fn longest_block(&self, thread: &Thread, ticks_per_us: u64) -> u64 {
        if self.mean_16.saturating_mul(1000) > 16 * SHORT_NS * ticks_per_us {
            return 0;
        }
        let square = self.mean_16 * self.mean_16;
        let variance = self.variance_256.max(square / LEAST_SPREAD).max(1);
        let calls = self.calls.min(u64::from(u32::MAX)).max(1);
        let by_total = calls.saturating_mul(square) / variance.saturating_mul(PRECISION).max(1);
        // In 1/16 ticks.
        let life = thread.life_ticks().max(LEAST_LIFE_US * ticks_per_us);
        let error = (life / PRECISION_OF_LIFE).min(1 << 27) * 16;
        let by_life = error * error / calls.saturating_mul(variance).max(1);
        by_total.max(by_life).min(LONGEST_BLOCK)
    }
}

/// Durations of the calls of a slot in one context: histogram pages of two nodes.
struct Durations {
    pages: [[u32; PAGES]; 2],
}

/// Of durations in ticks. The units avoid fractions.
struct Moments {
    calls: u64,
    /// In 1/16 ticks.
    mean_16: u64,
    /// In 1/256 ticks².
    variance_256: u64,
}

impl Durations {
    /// Whether next to nothing was called in the scopes of these nodes.
    fn hardly_call(&self, thread: &Thread, nodes: [*mut Node; 2]) -> bool {
        let scopes = nodes.map(|node| {
            // SAFETY: nodes live as long as the mapping.
            if node.is_null() { 0 } else { unsafe { (*node).scope_ref } }
        });
        let calls: u64 = self.buckets().map(|(_, calls)| calls).sum();
        let children = thread.tree.calls_in(scopes);
        children.is_some_and(|children| children.saturating_mul(CALLS_PER_CHILD) <= calls)
    }

    /// Calls in each bucket, longest first.
    fn buckets(&self) -> impl Iterator<Item = (u64, u64)> {
        (0..PAGES).rev().flat_map(move |page| {
            (0..PAGE_BUCKETS).rev().filter_map(move |at| {
                let count = |refs: &[u32; PAGES]| match refs[page] {
                    0 => 0,
                    // SAFETY: a page lives as long as the mapping, and is as large.
                    reference => unsafe { *node_at(reference).cast::<u64>().add(at) },
                };
                let calls = count(&self.pages[0]) + count(&self.pages[1]);
                (calls > 0).then(|| (bucket_middle(page * PAGE_BUCKETS + at), calls))
            })
        })
    }

    /// Their moments. As many of the longest as the thread was preempted are left out: a call is not
    /// uneven because the kernel took the processor away.
    fn moments(&self, preemptions: u64) -> Option<Moments> {
        let (mut all, mut total) = (0_u64, 0_u64);
        for (ticks, calls) in self.buckets() {
            all += calls;
            total = total.saturating_add(ticks.saturating_mul(calls));
        }
        let rough_mean = total.checked_div(all)?;
        let mut left_out = preemptions;
        let (mut calls, mut sum, mut squares) = (0_u64, 0_u64, 0_u64);
        for (ticks, count) in self.buckets() {
            let ignored =
                if ticks > rough_mean.saturating_mul(OUTLIER) { left_out.min(count) } else { 0 };
            left_out -= ignored;
            let count = count - ignored;
            calls += count;
            sum = sum.saturating_add(ticks.saturating_mul(count));
            squares = squares.saturating_add(ticks.saturating_mul(ticks).saturating_mul(count));
        }
        let mean_16 =
            (sum / calls.max(1)).saturating_mul(16) + sum % calls.max(1) * 16 / calls.max(1);
        let mean_of_squares = (squares / calls.max(1)).saturating_mul(256)
            + squares % calls.max(1) * 256 / calls.max(1);
        let variance_256 = mean_of_squares.saturating_sub(mean_16.saturating_mul(mean_16));
        (calls > 0).then_some(Moments { calls: all, mean_16, variance_256 })
    }
}

/// How often the kernel took the processor away from the calling thread.
fn preemptions(counts: &Counts) -> u64 {
    if !is_confined() {
        counts.preemptions.set(sys::preemptions());
    }
    counts.preemptions.get()
}

/// Records a sample of `ticks` that stands for `weight` calls.
///
/// # Safety
/// The node is of sampled calls, and the calling thread's.
pub(crate) unsafe fn record(thread: &Thread, node: *mut Node, ticks: u64, weight: u32) {
    // SAFETY: the caller vouches for the node, and for what is behind it.
    let (samples, known_weight, total) = unsafe {
        let samples = samples_of(node);
        ((samples), (*samples).weight, (*node).total_ticks)
    };
    let mean = total.checked_div(known_weight).unwrap_or(ticks);
    let mut own_weight = weight;
    if ticks > mean.saturating_mul(OUTLIER)
        && let Some(counts) = thread.counts.get()
    {
        if was_interrupted(counts, ticks, mean) {
            own_weight = 1;
        // SAFETY: as above.
        } else if let Some(known) = counts.known(unsafe { (*node).slot } & super::SLOT_MASK) {
            // Perhaps the calls are not as even as they seemed.
            known.samples.set(SAMPLES_PER_CHECK);
        }
    }
    let rest = weight - own_weight;
    let typical = if rest > 0 { mean } else { ticks };
    let pairs = u64::from(weight) * u64::from(weight - 1);
    let squares = pairs.saturating_mul(typical.saturating_mul(typical)) / SQUARES;
    // SAFETY: as above; a handler of the same thread may come in between, and only what tells the
    // precision is not updated by single instructions.
    unsafe {
        thread.tree.count_durations(node, ticks, u64::from(own_weight), !thread.is_busy());
        if rest > 0 {
            thread.tree.count_durations(node, typical, u64::from(rest), !thread.is_busy());
        }
        let added = u64::from(own_weight) * ticks + u64::from(rest) * typical;
        (*node).total_ticks += added;
        (*node).max_ticks = (*node).max_ticks.max(ticks);
        (*samples).weight += u64::from(weight);
        (*samples).ended += 1;
        (*samples).pairs += pairs;
        (*samples).pairs_ticks =
            (*samples).pairs_ticks.saturating_add(pairs.saturating_mul(typical));
        (*samples).pairs_squares = (*samples).pairs_squares.saturating_add(squares);
    }
}

/// Whether a call that took so much longer than others did so because its thread was preempted.
fn was_interrupted(counts: &Counts, ticks: u64, mean: u64) -> bool {
    let long_ticks =
        clock::ticks_per_us().unwrap_or(u64::MAX).saturating_mul(INTERRUPTION_NS / 1000);
    if ticks < mean.saturating_mul(INTERRUPTION) || ticks < long_ticks || is_confined() {
        return false;
    }
    let before = counts.preemptions.replace(sys::preemptions());
    counts.preemptions.get() != before
}
