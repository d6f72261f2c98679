//! What chase may cost a thread, and which imports are unhooked where it costs more.
//!
//! What a slot's calls have cost is told at the slow paths that they take anyway, by the costs measured at
//! the start. Every 10 ms of its time a thread that passes by adds up; if it is too much, the slots that
//! cost most, and did so the time before, are unhooked ([`crate::windows`]), as many as it takes.
//!
//! Somebody has to pass by to open the windows. So a slot is unhooked only beside another one that has
//! passed by at least every millisecond for some time: where a program calls one function and no other,
//! that one is counted. Slots that are called rarely are looked at more often than without a budget, every
//! half of a millisecond, which takes less than 0.1 % of it; and hot ones as rarely, so that samples cost
//! next to nothing.

use core::sync::atomic::{AtomicU64, Ordering};

use super::{
    Counts, ENDING, FIRST_LOOK, LONGEST, STRESS, Slot, alike, is_to_be_timed, may_be_unhooked,
};
use crate::calibrate::Cost;
use crate::thread::Thread;
use crate::{clock, recording, sys, windows};

/// Time between two slow paths of a slot, at best.
const PACE_US: u64 = 500;
/// One that others rely on passes by this often, and has done so, about, each of as many times that its
/// thread has added up. What it did longer ago is no matter.
const LEAST_PACE_US: u64 = 1_000;
const STEADY: u32 = 25;
const LONG_STEADY: u32 = 250;
/// A thread adds up this often.
const CHECK_US: u64 = if STRESS { 100 } else { 10_000 };
/// Least calls between two slow paths.
const LEAST_CALLS: u64 = 4;
/// Most calls between two slow paths of a twin: a window is not much longer.
const TWIN_CALLS: u32 = 1024;
/// Slots that cost less than this part of the budget are let be.
const SMALL_PART: u64 = 4;
/// So often, one after the other, it has to be too much.
const TOO_OFTEN: u32 = 2;
/// Slots that are unhooked at once.
const MANY: usize = 8;

/// The share of a thread's time, in 1/1,000,000; 0: there is no budget.
static SHARE: AtomicU64 = AtomicU64::new(0);
const MILLION: u64 = 1_000_000;
/// What a call costs that is counted, one that is counted in a frame, a sample and a timed one, in
/// 1/1024 ticks.
static COSTS: [AtomicU64; 4] = [const { AtomicU64::new(0) }; 4];
const COUNTED: usize = 0;
/// What a counted call takes at least: some processors hide all of it in the loop by which that is measured, and not in
/// programs (`sort`, counted: 0.5 ns of CPU time more for each of 77 million calls, 1.3 ticks).
const LEAST_COUNTED: u64 = 1024;
const FRAMED: usize = 1;
const SAMPLED: usize = 2;
const TIMED: usize = 3;

/// From now on chase is to cost each thread at most this share of its time, in 1/1,000,000. Called while
/// there is one thread, before there are any slots.
pub(crate) fn begin(share: u64, cost: &Cost) {
    let counted = cost.counted.max(LEAST_COUNTED);
    let costs = [counted, cost.framed, cost.inside + cost.sampled, cost.inside + cost.outside];
    for (known, cost) in COSTS.iter().zip(costs) {
        known.store(cost, Ordering::Relaxed);
    }
    SHARE.store(share, Ordering::Relaxed);
    alike::allow(false);
    windows::begin();
}

/// Whether there is a budget.
pub(super) fn is_kept() -> bool {
    SHARE.load(Ordering::Relaxed) > 0
}

/// The share of a thread's time that timing may take, in 1/1024: `usual`, or half of the budget.
pub(super) fn timing_share(usual: u64) -> u64 {
    match SHARE.load(Ordering::Relaxed) {
        0 => usual,
        share => (share * 1024 / 2 / MILLION).clamp(1, usual),
    }
}

/// A thread takes a slow path, in a call of `slot`.
pub(crate) fn pass_by(thread: &Thread, slot: u32) {
    let (true, Some(counts)) = (is_kept(), thread.counts.get()) else { return };
    let now = clock::now();
    windows::pass_by(now, slot);
    let elapsed = now.saturating_sub(counts.checked_ticks.get());
    let Some(ticks_per_us) = clock::ticks_per_us() else { return };
    if elapsed >= CHECK_US * ticks_per_us {
        counts.checked_ticks.set(now);
        if !recording::stopped() && !ENDING.load(Ordering::Relaxed) {
            let cpu_ns = sys::clock_ns(libc::CLOCK_THREAD_CPUTIME_ID);
            let worked_ns = cpu_ns.saturating_sub(counts.checked_cpu_ns.replace(cpu_ns));
            counts.check(elapsed, worked_ns / 1000);
        }
        for known in counts.all_known() {
            known.visits.set(0);
            known.calls.set(0);
            known.earlier_cost.set(known.cost.replace(0));
        }
    }
}

/// As many calls as are made in the usual time between two slow paths, where `calls` took `elapsed`
/// ticks.
pub(super) fn pace(calls: u32, elapsed: u64, ticks_per_us: u64) -> u32 {
    let calls = u64::from(calls).saturating_mul(PACE_US * ticks_per_us) / elapsed.max(1);
    calls.clamp(LEAST_CALLS, u64::from(LONGEST)) as u32
}

/// The same for a slot whose latest slow path is `calls` ago.
fn pace_of(known: &Slot, calls: u32) -> u32 {
    let now = clock::now();
    let elapsed = now.saturating_sub(known.since_ticks.replace(now));
    clock::ticks_per_us().map_or(FIRST_LOOK, |ticks_per_us| pace(calls, elapsed, ticks_per_us))
}

/// Calls up to the next look at a slot whose calls are all timed, because of what they are.
pub(super) fn next_look(known: &Slot) -> u32 {
    let calls = known.interval.get();
    spend_timed(known, calls);
    let next = pace_of(known, calls.max(1));
    known.interval.set(next);
    next
}

/// Calls up to the next that is looked at, of a slot whose calls are only counted, after so many.
pub(super) fn next_stop(known: &Slot, calls: u32) -> u32 {
    if windows::is_twin(known.number) { TWIN_CALLS } else { pace_of(known, calls) }
}

/// The longest block for a slot of which the last `calls` took `elapsed` ticks.
pub(super) fn longest_block(known: &Slot, calls: u32, elapsed: u64, ticks_per_us: u64) -> u32 {
    match is_kept() {
        false => LONGEST,
        true if windows::is_twin(known.number) => TWIN_CALLS,
        true => pace(calls, elapsed, ticks_per_us),
    }
}

/// One call of a slot was a sample, and stands for `calls`.
pub(super) fn spend_sampled(known: &Slot, calls: u32, framed: bool) {
    spend(known, calls, if framed { FRAMED } else { COUNTED }, cost_of(SAMPLED));
}

/// So many calls of a slot were only counted.
pub(super) fn spend_counted(known: &Slot, calls: u32) {
    spend(known, calls, COUNTED, 0);
}

/// So many calls of a slot were timed; 0: about as many as are before the first look.
pub(super) fn spend_timed(known: &Slot, calls: u32) {
    spend(known, if calls == 0 { FIRST_LOOK } else { calls }, TIMED, 0);
}

fn spend(known: &Slot, calls: u32, each: usize, more: u64) {
    if is_kept() {
        let cost = u64::from(calls).saturating_mul(cost_of(each)).saturating_add(more);
        known.cost.set(known.cost.get().saturating_add(cost));
        known.visits.set(known.visits.get() + 1);
        known.calls.set(known.calls.get().saturating_add(calls));
        windows::count(known.number, calls.into(), cost);
    }
}

fn cost_of(kind: usize) -> u64 {
    COSTS.get(kind).map_or(0, |cost| cost.load(Ordering::Relaxed))
}

impl Slot {
    /// Whether its calls pass by often enough for others to be unhooked.
    fn is_reliable(&self) -> bool {
        self.steady.get() >= STEADY && !windows::is_twin(self.number)
    }

    /// What its calls cost each time. Where its thread had to wait for a processor, they seem to be rare, and
    /// it takes the slow path more often than `most_visits` for a while; and where they change, they are all
    /// timed for a while.
    fn find_lasting_cost(&self, most_visits: u64) -> u64 {
        let (cost, visits) = (self.cost.get(), u64::from(self.visits.get()));
        let lasting = if STRESS || windows::is_twin(self.number) {
            cost
        } else {
            // However fast its calls are, a block of them is no longer than that.
            let most_visits = most_visits.max(u64::from(self.calls.get()) / u64::from(LONGEST));
            (cost / visits.max(1) * visits.min(most_visits)).min(self.earlier_cost.get())
        };
        self.lasting_cost.set(lasting);
        lasting
    }
}

impl Counts {
    /// Unhooks what it takes, if the last `elapsed` ticks, of which the thread worked for `worked_us`, cost
    /// too much.
    fn check(&self, elapsed: u64, worked_us: u64) {
        let budget = elapsed.saturating_mul(SHARE.load(Ordering::Relaxed)) / MILLION * 1024;
        // That many make a slot one that others can rely on.
        let least_visits = (worked_us / LEAST_PACE_US).max(1);
        let most_visits = (worked_us * 5 / 4 / PACE_US).max(1);
        let mut spent: u64 =
            self.all_known().map(|known| known.find_lasting_cost(most_visits)).sum();
        for known in self.all_known() {
            let is_steady = u64::from(known.visits.get()) >= least_visits;
            let steady = known.steady.get();
            known.steady.set(match known.visits.get() {
                0 => 0,
                _ if is_steady => steady + 1,
                _ => steady.saturating_sub(2),
            });
        }
        self.too_much.set(if spent > budget { self.too_much.get() + 1 } else { 0 });
        // What somebody has just unhooked may look as if it could be relied on.
        let is_settled = self.changes.replace(windows::changes()) == windows::changes();
        if (self.too_much.get() < TOO_OFTEN || !is_settled) && !STRESS {
            return;
        }
        for _ in 0..MANY {
            if spent <= budget && !STRESS {
                return;
            }
            let candidates = self.all_known().filter(|known| self.is_candidate(known));
            let Some(dearest) = candidates.max_by_key(|known| known.lasting_cost.get()) else {
                return;
            };
            let cost = dearest.lasting_cost.replace(0);
            if cost <= budget / SMALL_PART && !STRESS {
                return;
            }
            // Those that did not pass by most of the time that this one did may stop again.
            let is_other = |known: &&Slot| {
                known.number != dearest.number
                    && known.is_reliable()
                    && known.steady.get() >= dearest.steady.get().min(LONG_STEADY) / 2
            };
            if !self.all_known().any(|known| is_other(&known)) && !STRESS {
                return;
            }
            match windows::lower(dearest.number) {
                Some(true) => {
                    dearest.steady.set(0);
                    // Windows of the next level see a quarter.
                    spent -= cost / 4 * 3;
                }
                Some(false) if windows::changes() == self.changes.get() => {}
                // Another thread was faster, perhaps with the same: what it leaves is to be seen first.
                _ => return,
            }
        }
    }

    /// Whether a slot has cost something, and may be unhooked.
    fn is_candidate(&self, known: &Slot) -> bool {
        let is_sampled = known.block.load(Ordering::Relaxed) > 0;
        known.lasting_cost.get() > 0
            && (is_sampled && !self.is_framed(known.number) || STRESS)
            && !is_to_be_timed(known.number)
            && may_be_unhooked(known.number)
    }
}
