//! Chooses which slots are sampled, and how long their blocks are.
//!
//! Only those with many short calls of even durations: timing them all would take longer than the calls do. Where
//! they call other functions, or the kernel while a companion watches, the calls that are not timed get frames, so
//! that what they call is in their context. Integers only: floating point would change the application's exception
//! flags.

use core::sync::atomic::Ordering;

use chase_format::histogram::{PAGE_BUCKETS, PAGES, bucket_middle};
use chase_format::layout::{FRAMED, Node, SAMPLED};

use super::record::interruption_ticks;
use super::{SAMPLES_PER_CHOICE, cost, is_to_be_timed, is_watched};
use chase_logic::countdown::LONGEST;

use crate::counts::{Counts, SlotState};
use crate::for_tests::{FIRST_LOOK, FORCED_BLOCK};
use crate::node::{is_framed, is_sampled, node_at, samples_of};
use crate::sys::is_confined;
use crate::thread::Thread;
use crate::traits::has;
use crate::{clock, recording, sys};
use chase_logic::moments::{Life, Moments};
use chase_logic::pending::Pending;
pub(super) use chase_logic::plan::Plan;
use chase_logic::plan::{SHORTEST_BLOCK, are_frequent, until_next_look};
use chase_logic::traits::HAS_CHILDREN;

/// Calls count as calling next to nothing if at most one in so many calls another function.
const CALLS_PER_CHILD: u64 = 1024;
/// Whether a slot's calls need frames is determined by a search of the tree, at one in so many choices of the block's
/// length. (More often at first.)
const CHOICES_PER_SEARCH: u32 = 32;
/// As long as timing has taken less, a thread is assumed to run all the time, and does not ask the kernel.
const MUCH_SPENT_US: u64 = 100;
/// The number of nodes of a slot in a context: for calls that are all timed, for samples among calls without frames,
/// and for samples among calls with frames.
const NODES: usize = 3;

/// Chooses the first plan for a slot whose calls were all timed so far. Sets when to review it next.
pub(super) fn first(
    thread: &Thread,
    counts: &Counts,
    state: &SlotState,
    context: *mut Node,
) -> Plan {
    let now = clock::now();
    let elapsed = now.wrapping_sub(state.since_ticks.replace(now));
    let calls = state.interval.replace(FIRST_LOOK);
    counts.spend_timed(calls.max(FIRST_LOOK));
    let Some(ticks_per_us) = clock::ticks_per_us() else { return Plan::ALL };
    if let Some(block) = FORCED_BLOCK {
        return Plan::with_block(block, true);
    }
    if calls == 0 {
        state.interval.set(FIRST_LOOK);
        return Plan::ALL;
    }
    let apart_ns = elapsed / u64::from(calls) * 1000 / ticks_per_us.max(1);
    if !are_frequent(apart_ns, || (life(thread, counts, ticks_per_us), thread.ran_so_far())) {
        state.interval.set(next_look(thread, calls));
        return Plan::ALL;
    }
    let durations = Durations::in_context(thread, context, state.number);
    let mut block = 0;
    if let Some(moments) = durations.moments(0, ticks_per_us) {
        block = longest_block(&moments, thread, counts, ticks_per_us);
        state.moments.set(moments);
    }
    // The kernel may have preempted the thread during some calls; finding out takes a system call.
    if block < SHORTEST_BLOCK
        && let Some(moments) = durations.moments(preemptions(counts), ticks_per_us)
    {
        block = longest_block(&moments, thread, counts, ticks_per_us);
        state.moments.set(moments);
    }
    if block < SHORTEST_BLOCK {
        state.interval.set(next_look(thread, calls));
        return Plan::ALL;
    }
    // Earlier preemptions affect no sample.
    preemptions(counts);
    let framed = is_watched(state.number)
        || has(state.number, HAS_CHILDREN) && !hardly_calls(thread, context, state.number);
    Plan::with_block(block, framed)
}

/// Chooses the next plan for a slot that is sampled.
pub(super) fn next(
    thread: &Thread,
    counts: &Counts,
    state: &SlotState,
    context: *mut Node,
) -> Plan {
    if is_to_be_timed(state.number) || recording::stopped() || thread.pending.get() != Pending::NONE
    {
        state.interval.set(LONGEST);
        return Plan::ALL;
    }
    let samples = state.samples.get() + 1;
    if samples < SAMPLES_PER_CHOICE {
        if counts.is_new() {
            counts.probe();
        }
        state.samples.set(samples);
        let block = state.block.load(Ordering::Relaxed);
        return Plan { block, framed: counts.is_framed(state.number) };
    }
    state.samples.set(0);
    counts.spend_samples(thread, samples);
    let Some(ticks_per_us) = clock::ticks_per_us() else { return Plan::ALL };
    state.interval.set(FIRST_LOOK);
    if let Some(block) = FORCED_BLOCK {
        return Plan::with_block(block, true);
    }
    let block = longest_block(&state.moments.get(), thread, counts, ticks_per_us);
    state.since_ticks.set(clock::now());
    let choices = state.choices.get().wrapping_add(1);
    state.choices.set(choices);
    let framed = is_watched(state.number)
        || if choices.is_power_of_two() || choices.is_multiple_of(CHOICES_PER_SEARCH) {
            has(state.number, HAS_CHILDREN) && !hardly_calls(thread, context, state.number)
        } else {
            counts.is_framed(state.number)
        };
    Plan::with_block(block, framed)
}

/// Returns the number of calls until the next review of a slot whose calls are all timed.
fn next_look(thread: &Thread, calls: u32) -> u32 {
    until_next_look(thread.ran_so_far(), cost::timed_call(), calls, FIRST_LOOK)
}

fn life(thread: &Thread, counts: &Counts, ticks_per_us: u64) -> Life {
    let is_much = counts.spent_ticks.get() > MUCH_SPENT_US * ticks_per_us;
    let ran = if is_much { thread.ran_ticks(ticks_per_us) } else { thread.ran_so_far() };
    let timing_share = counts.timing_share(ran, ticks_per_us);
    Life { ticks: thread.life_ticks(), ticks_per_us, timing_share }
}

/// Returns the longest block that is accurate enough for calls with such durations; 0 if they are not short.
fn longest_block(moments: &Moments, thread: &Thread, counts: &Counts, ticks_per_us: u64) -> u64 {
    moments.longest_block(life(thread, counts, ticks_per_us))
}

/// Whether the calls of a slot in `context` call next to nothing.
fn hardly_calls(thread: &Thread, context: *mut Node, slot: u32) -> bool {
    let nodes = nodes_of(thread, context, slot);
    // SAFETY: nodes live as long as the mapping.
    let scopes = nodes.map(|node| if node.is_null() { 0 } else { unsafe { (*node).scope_ref } });
    // Calls that had frames; what others call is unknown.
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

/// The durations of a slot's calls in one context: the histogram pages of its nodes.
struct Durations {
    pages: [[u32; PAGES]; NODES],
}

impl Durations {
    fn in_context(thread: &Thread, context: *mut Node, slot: u32) -> Self {
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

    /// Returns the middle of each bucket in ticks, and its number of calls, longest first.
    fn buckets(&self) -> impl Iterator<Item = (u64, u64)> {
        (0..PAGES).rev().flat_map(move |page| {
            (0..PAGE_BUCKETS).rev().filter_map(move |at| {
                let count = |refs: &[u32; PAGES]| match refs.get(page).copied().unwrap_or(0) {
                    0 => 0,
                    // SAFETY: pages live as long as the mapping, and have this size.
                    reference => unsafe { *node_at(reference).cast::<u64>().add(at) },
                };
                let calls: u64 = self.pages.iter().map(count).sum();
                (calls > 0).then(|| (bucket_middle(page * PAGE_BUCKETS + at), calls))
            })
        })
    }

    /// Computes their moments without those of calls that were preempted; `None` if there are none.
    fn moments(&self, preemptions: u64, ticks_per_us: u64) -> Option<Moments> {
        Moments::of(|| self.buckets(), preemptions, interruption_ticks(ticks_per_us))
    }
}

/// Returns how often the kernel has preempted the calling thread.
fn preemptions(counts: &Counts) -> u64 {
    if !is_confined() {
        counts.preemptions.set(sys::preemptions());
    }
    counts.preemptions.get()
}
