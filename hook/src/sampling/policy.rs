//! Which slots are sampled, and how long their blocks are.
//!
//! Only calls that are many, short and even: where those are all timed, the timing takes longer than
//! they do. Where they call others, or the kernel while somebody watches, the calls that are not timed
//! get frames, so that those are in their context. Integers only: floating point would change the application's exception flags.
//!
//! With one random call out of each block of N timed, the standard error of the total of n calls is
//! at most `√(N·n) · σ`, where σ is the standard deviation of a call. Three lengths are good enough:
//!
//! * `(ε·S)²/(n·σ²)`: the error is a fraction ε of the total so far, S.
//! * `(δ·T)²/(n·σ²)`: it is a fraction δ of the thread's time so far, T.
//! * `κ/σ`: where the timing takes more of T than it may, it is done where it tells most. Of all ways
//!   to spend a number of samples on several slots, the one with the least error takes from each in
//!   proportion to its σ (Neyman's allocation). κ grows with the share of T that was spent.
//!
//! The longest counts, so heavy tails keep blocks short as long as that can be afforded. It is chosen
//! from what is known before a block begins, so the estimate stays unbiased whatever the order of the
//! calls is.

use core::sync::atomic::Ordering;

use chase_format::histogram::{PAGE_BUCKETS, PAGES, bucket_middle};
use chase_format::layout::{self, FRAMED, Node, SAMPLED};

use super::record::interruption_ticks;
use super::{
    Counts, FIRST_LOOK, HAS_CHILDREN, LONGEST, STRESS, Slot, cost, has, is_framed, is_sampled,
    is_to_be_timed, is_watched, samples_of,
};
use crate::recording::is_confined;
use crate::thread::{Pending, Thread};
use crate::tree::node_at;
use crate::{clock, recording, sys};

/// Shortest: a sample costs as much as several timed calls.
const SHORTEST_BLOCK: u64 = 8;
/// 1/ε for a standard error of 1.3 % of the total, or 1/δ for one of 0.02 % of the thread's time.
const PRECISION: u64 = 75;
const PRECISION_OF_LIFE: u64 = 5_000;
/// What nobody expects of an error, in standard errors.
const MANY_ERRORS: u64 = 4;
/// A thread is taken to live as long at least: an error of 20 µs is nobody's concern.
const LEAST_LIFE_US: u64 = 100_000;
/// What timing may take of a thread's time, in 1/1024, with what it makes others find cold; and κ in ticks where it
/// takes just that. It grows with the eighth power: with the fourth, timing took twice as much where calls are uneven.
const BUDGET: u64 = 12;
const KAPPA: u64 = 4_000;
/// The part of a thread's time that the timing of a slot's calls may take before it is looked at again.
const UNLOOKED_PART: u64 = 400;
/// As many calls, at least, for one that is made inside of them.
const CALLS_PER_CHILD: u64 = 1024;
/// The least cv² that is believed, as 1/x: clock reads and buckets are no finer.
const LEAST_SPREAD: u64 = 100;
/// Samples between two choices of the block.
pub(crate) const SAMPLES_PER_CHOICE: u32 = 16;
/// Such choices, for which it is asked once whether the calls need frames: that is a search. (The first
/// ones are asked more often.)
const CHOICES_PER_SEARCH: u32 = 32;
/// Calls after which half of what is known of the durations of earlier ones is forgotten.
const MEMORY: u64 = 1 << 18;
/// Calls are many at this many ns from one to the next or less; where the timing takes much of what it
/// may, at ten times as many, since it may be that of many such functions.
const MANY_NS: u64 = 10_000;
const MANY_TOGETHER_NS: u64 = 100_000;
/// Calls are short at this many ns each.
const SHORT_NS: u64 = 1_000;
/// A call that is this many means long is looked at.
pub(super) const OUTLIER: u64 = 16;
/// Nodes of one slot in one context: of calls that were all timed, of samples among those without a
/// frame, and among those with one.
const NODES: usize = 3;

/// How the next calls of a slot are timed.
#[derive(Clone, Copy)]
pub(super) struct Plan {
    /// Calls of which one is timed; 0: all are.
    pub(super) block: u32,
    /// Whether the others get frames.
    pub(super) framed: bool,
}

impl Plan {
    const ALL: Self = Self { block: 0, framed: false };

    fn of(block: u64, framed: bool) -> Self {
        if block < SHORTEST_BLOCK { Self::ALL } else { Self { block: block as u32, framed } }
    }
}

/// The first plan for a slot of which every call was timed so far. Sets when to look again.
pub(super) fn first(thread: &Thread, counts: &Counts, known: &Slot, context: *mut Node) -> Plan {
    let now = clock::now();
    let elapsed = now.wrapping_sub(known.since_ticks.replace(now));
    let calls = known.interval.replace(FIRST_LOOK);
    counts.spend_timed(calls.max(FIRST_LOOK));
    let Some(ticks_per_us) = clock::ticks_per_us() else { return Plan::ALL };
    let far = if counts.timing_share(thread.life_ticks(), ticks_per_us) > BUDGET / 2 {
        MANY_TOGETHER_NS
    } else {
        MANY_NS
    };
    let many = STRESS || calls > 0 && elapsed / u64::from(calls) * 1000 <= far * ticks_per_us;
    if !many {
        known.interval.set(match calls {
            0 => FIRST_LOOK,
            _ => until_next_look(thread, calls),
        });
        return Plan::ALL;
    }
    let durations = Durations::of(thread, context, known.number);
    let mut block = 0;
    if let Some(moments) = durations.moments(0, ticks_per_us) {
        block = moments.longest_block(thread, counts, ticks_per_us);
        known.moments.set(moments);
    }
    // Perhaps because the kernel took the processor away, which takes longer to find out.
    if block < SHORTEST_BLOCK
        && let Some(moments) = durations.moments(preemptions(counts), ticks_per_us)
    {
        block = moments.longest_block(thread, counts, ticks_per_us);
        known.moments.set(moments);
    }
    let framed = is_watched(known.number)
        || has(known.number, HAS_CHILDREN) && !hardly_calls(thread, context, known.number);
    let plan = Plan::of(block, framed);
    if plan.block == 0 {
        known.interval.set(until_next_look(thread, calls));
    } else {
        // What was preempted so far is of no sample.
        preemptions(counts);
    }
    plan
}

/// Calls up to the next look at a slot whose calls are all timed, `calls` after the one before: twice as
/// many, unless their timing took too much of the thread's time before anybody looked.
fn until_next_look(thread: &Thread, calls: u32) -> u32 {
    let affordable = thread.life_ticks() / UNLOOKED_PART / cost::timed_call().max(1);
    (calls * 2).min(LONGEST).min(affordable.min(u64::from(LONGEST)) as u32).max(FIRST_LOOK)
}

/// The next plan for a slot that is sampled.
pub(super) fn next(thread: &Thread, counts: &Counts, known: &Slot, context: *mut Node) -> Plan {
    if is_to_be_timed(known.number) || recording::stopped() || thread.pending.get() != Pending::NONE
    {
        known.interval.set(LONGEST);
        return Plan::ALL;
    }
    let samples = known.samples.get() + 1;
    if samples < SAMPLES_PER_CHOICE {
        if counts.is_new() {
            counts.probe();
        }
        known.samples.set(samples);
        let block = known.block.load(Ordering::Relaxed);
        return Plan { block, framed: counts.is_framed(known.number) };
    }
    counts.probe();
    known.samples.set(0);
    counts.spend_samples(thread, samples);
    let Some(ticks_per_us) = clock::ticks_per_us() else { return Plan::ALL };
    known.interval.set(FIRST_LOOK);
    let block = known.moments.get().longest_block(thread, counts, ticks_per_us);
    known.since_ticks.set(clock::now());
    let choices = known.choices.get().wrapping_add(1);
    known.choices.set(choices);
    let framed = is_watched(known.number)
        || if choices.is_power_of_two() || choices.is_multiple_of(CHOICES_PER_SEARCH) {
            has(known.number, HAS_CHILDREN) && !hardly_calls(thread, context, known.number)
        } else {
            counts.is_framed(known.number)
        };
    Plan::of(block, framed)
}

/// Whether next to nothing is called in the calls of a slot made in `context`.
fn hardly_calls(thread: &Thread, context: *mut Node, slot: u32) -> bool {
    let nodes = nodes_of(thread, context, slot);
    // SAFETY: nodes live as long as the mapping.
    let scopes = nodes.map(|node| if node.is_null() { 0 } else { unsafe { (*node).scope_ref } });
    // Those that had frames: of others it is not known what they call.
    let calls: u64 = nodes
        .iter()
        .filter(|node| !node.is_null())
        // SAFETY: as above.
        .map(|&node| unsafe {
            if is_sampled(node) && !is_framed(node) {
                u64::from((*samples_of(node)).begun)
            } else {
                (*node).calls
            }
        })
        .sum();
    let children = thread.tree.calls_in(scopes);
    children.is_some_and(|children| children.saturating_mul(CALLS_PER_CHILD) <= calls)
}

fn nodes_of(thread: &Thread, context: *mut Node, slot: u32) -> [*mut Node; NODES] {
    [slot, slot | SAMPLED, slot | SAMPLED | FRAMED].map(|key| thread.tree.find(context, key))
}

/// Sums over the durations of calls, in ticks.
#[derive(Clone, Copy)]
pub(super) struct Moments {
    calls: u64,
    total: u64,
    squares: u64,
    /// Of all calls, forgotten or not.
    all_calls: u64,
    all_total: u64,
}

impl Moments {
    const NONE: Self = Self { calls: 0, total: 0, squares: 0, all_calls: 0, all_total: 0 };

    pub(super) fn add(&mut self, ticks: u64, calls: u64) {
        let total = ticks.saturating_mul(calls);
        self.all_calls += calls;
        self.all_total = self.all_total.saturating_add(total);
        self.calls += calls;
        self.total = self.total.saturating_add(total);
        self.squares = self.squares.saturating_add(ticks.saturating_mul(total));
        if self.calls > MEMORY {
            self.calls /= 2;
            self.total /= 2;
            self.squares /= 2;
        }
    }

    /// Whether so many ticks are many times of what the error of the total may be.
    pub(super) fn is_much(&self, ticks: u64) -> bool {
        ticks > self.all_total / PRECISION * MANY_ERRORS
    }

    /// The longest block that is good enough; 0 if the calls are not short.
    fn longest_block(&self, thread: &Thread, counts: &Counts, ticks_per_us: u64) -> u64 {
        if STRESS {
            return SHORTEST_BLOCK;
        }
        let calls = self.calls.clamp(1, u64::from(u32::MAX));
        // In 1/16 and 1/256 ticks.
        let mean = self.total.saturating_mul(16) / calls;
        if mean.saturating_mul(1000) > 16 * SHORT_NS * ticks_per_us {
            return 0;
        }
        let square = mean * mean;
        let of_squares = self.squares / calls * 256 + self.squares % calls * 256 / calls;
        let variance = of_squares.saturating_sub(square).max(square / LEAST_SPREAD).max(1);
        let now = thread.life_ticks();
        let life = now.max(LEAST_LIFE_US * ticks_per_us);
        let error = (self.all_total / PRECISION).max(life / PRECISION_OF_LIFE);
        let by_error = longest_within(error.saturating_mul(16), self.all_calls, variance);
        let share = counts.timing_share(now, ticks_per_us);
        let kappa = kappa(share, BUDGET);
        let by_cost = kappa * 16 / variance.isqrt().max(1);
        by_error.max(by_cost).min(layout::longest_block(self.all_calls))
    }
}

/// κ in ticks, where timing has taken `share` of a thread's time and `may` take so much.
fn kappa(share: u64, may: u64) -> u64 {
    // A ratio in 1/16, and at most 8: its fourth power has 28 bits, and 16 of them are its fraction.
    let fourth = (share.min(1024) * 16 / may).min(128).pow(4);
    (((KAPPA * fourth) >> 16) * fourth) >> 16
}

/// The longest block with which the total of so many calls has a standard error of `error`.
fn longest_within(error: u64, calls: u64, variance: u64) -> u64 {
    // Squared, it has to fit a word.
    let shift = (u64::BITS / 2).saturating_sub(error.leading_zeros());
    let error = error >> shift;
    error * error / (calls.saturating_mul(variance) >> (2 * shift)).max(1)
}

/// Durations of the calls of a slot in one context: histogram pages of its nodes.
struct Durations {
    pages: [[u32; PAGES]; NODES],
}

impl Durations {
    fn of(thread: &Thread, context: *mut Node, slot: u32) -> Self {
        let pages = nodes_of(thread, context, slot).map(|node| {
            if node.is_null() {
                return [0; PAGES];
            }
            // SAFETY: nodes live as long as the mapping.
            unsafe {
                if is_sampled(node) { (*samples_of(node)).page_refs } else { (*node).page_refs }
            }
        });
        Self { pages }
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
                let calls: u64 = self.pages.iter().map(count).sum();
                (calls > 0).then(|| (bucket_middle(page * PAGE_BUCKETS + at), calls))
            })
        })
    }

    /// Their moments. As many of the longest as the thread was preempted are left out, if they took as
    /// long as that does: a call is not uneven because the kernel took the processor away.
    fn moments(&self, preemptions: u64, ticks_per_us: u64) -> Option<Moments> {
        let (mut all, mut total) = (0_u64, 0_u64);
        for (ticks, calls) in self.buckets() {
            all += calls;
            total = total.saturating_add(ticks.saturating_mul(calls));
        }
        let rough_mean = total.checked_div(all)?;
        let least = rough_mean.saturating_mul(OUTLIER).max(interruption_ticks(ticks_per_us));
        let mut left_out = preemptions;
        let mut moments = Moments::NONE;
        for (ticks, calls) in self.buckets() {
            let ignored = if ticks > least { left_out.min(calls) } else { 0 };
            left_out -= ignored;
            moments.add(ticks, calls - ignored);
        }
        (moments.calls > 0).then_some(moments)
    }
}

/// How often the kernel took the processor away from the calling thread.
fn preemptions(counts: &Counts) -> u64 {
    if !is_confined() {
        counts.preemptions.set(sys::preemptions());
    }
    counts.preemptions.get()
}
