//! Computes what each context of a thread cost, by the formulas in the crate's documentation.

mod estimates;

use std::ops::AddAssign;

use chase_recorder::layout::{Header, SQUARES, SlotClass, THREAD_MAIN};
use chase_recorder::reader::{Context, Histogram, Thread};

use crate::clock::Ticks;
use crate::image::Image;
use crate::latest;
use crate::off_cpu::Sampling;
use crate::uncertainty::Uncertainty;
use crate::walk::NOBODY;

/// Fractions of a tick, the unit of the hook's costs.
pub(crate) const PARTS: f64 = 1024.0;

/// Standard error, in ticks, of each duration of a sample, whose clock is read when all that came before is done (`lfence`):
/// the second read doesn't wait for unfinished instructions, and a function of a few nanoseconds takes less if nothing
/// waits for its result, or if the processor does it beside what comes before and after. In a loop of 60 million calls of `memcpy`, of
/// some bytes each, calls took 7.2 ns by samples of calls, and 1.9 ns by samples of the processor: 13 ticks less.
const SAMPLE_CLOCK_TICKS: f64 = 8.0;

/// The same of other timed calls, in parts of what their reads of the clock take within the duration: the first one
/// doesn't wait either, so that a function may seem to take what its arguments were waited for. In `php` and `sort`, tiny functions
/// took 2 to 23 ns a call where all were timed, and 0 to 14 ns by samples; the reads took 12 ns. `sin` of the result of a long chain
/// of additions and multiplications took 44 ns, and 25 ns by samples; the reads took 8 ns. With a part of 1, 17.6 % of 239
/// objects and runs were outside of their intervals, instead of 5 % (`bench --only agree`).
const CLOCK_PART: f64 = 1.5;

/// The hook's costs per call in ticks: see the header's fields of the same names.
#[derive(Clone, Copy)]
struct Hook {
    inside: f64,
    outside: f64,
    counted: f64,
    sampled: f64,
    framed: f64,
    error: f64,
}

impl Hook {
    fn from_header(header: &Header) -> Self {
        let ticks = |parts: u64| parts as f64 / PARTS;
        Self {
            inside: ticks(header.cost_inside),
            outside: ticks(header.cost_outside),
            counted: ticks(header.cost_counted),
            sampled: ticks(header.cost_sampled),
            framed: ticks(header.cost_framed),
            error: ticks(header.cost_error.into()),
        }
    }
}

/// The costs of a thread. Times are in ticks.
pub(crate) struct ThreadCosts {
    /// By number of the context: callers before callees.
    pub(crate) contexts: Vec<Cost>,
    pub(crate) start: Ticks,
    pub(crate) end: Ticks,
    pub(crate) application: f64,
    pub(crate) application_uncertainty: Uncertainty,
    pub(crate) own_cost: f64,
    pub(crate) overlap: f64,
}

/// The costs of a context. A folded context only has calls and measured time; its self time, total and nested cost
/// are in its scope.
#[derive(Clone, Copy)]
pub(crate) struct Cost {
    /// Number of the caller, or [`NOBODY`].
    pub(crate) caller: u32,
    pub(crate) scope: u32,
    pub(crate) calls: u64,
    /// Whether calls may be missing from all figures.
    pub(crate) incomplete: bool,
    /// How many of the latest calls `calls` may lack, or have too many.
    pub(crate) calls_bound: u64,
    /// Calls that ended and have a duration, which may be an estimate.
    pub(crate) timed: u64,
    /// Those of them that were timed.
    pub(crate) samples: u64,
    /// Σ w² over them, where w is the number of calls that each stands for.
    pub(crate) squared_weights: f64,
    /// The uncertainty of the self time, in ticks.
    pub(crate) uncertainty: Uncertainty,
    pub(crate) unwound: u64,
    pub(crate) open: u64,
    /// Measured time of the calls that ended, minus the inside cost.
    pub(crate) measured: f64,
    /// Time since the start of the latest call, if that was open at the end.
    pub(crate) open_time: f64,
    pub(crate) self_time: f64,
    pub(crate) total: f64,
    /// The hook's cost in nested calls, and that of observing system calls.
    pub(crate) nested: f64,
    /// Whether time spent inside is missing because of folded recursion.
    pub(crate) total_is_cut: bool,
    /// Whether the call was made before a fork, so that its duration is incomplete.
    pub(crate) inherited: bool,
    slot: u32,
    class: SlotClass,
    /// Whether not all of its calls were timed, and whether these are counted in their own context all the same.
    sampled: bool,
    framed: bool,
    /// The outermost scope into which anything inside folds.
    first_scope: u32,
    last_start: u64,
    /// The hook's cost within the self time, before it was subtracted.
    own_cost: f64,
    /// The hook's cost of these calls: in their measured time, and in that of their callers.
    inside_cost: f64,
    outside_cost: f64,
}

/// Returns the time off the CPU, in ticks, that was measured in the context of a number, and that the estimated time of
/// the given context lacks of it; and its variance. `None` if nothing was measured there.
pub(crate) type Lacking<'a> = &'a dyn Fn(usize, &Cost) -> Option<(f64, f64)>;

/// A thread's time off the CPU as the scheduler measured it, in ticks: in the code of a caller and in calls that have no frames.
#[derive(Default)]
pub(crate) struct OffCpuTicks {
    /// By number of the context.
    pub(crate) in_contexts: Vec<f64>,
    /// Outside of all contexts.
    pub(crate) in_own_code: f64,
}

/// Computes the costs of a thread. Calls `each` for every context, by number, with the histogram of its calls; it
/// returns the class of the context's slot. Then calls `lacking` where calls were sampled.
pub(crate) fn of_thread(
    image: &Image,
    thread: Thread<'_>,
    mut each: impl FnMut(&Context<'_>, &Histogram) -> SlotClass,
    lacking: Lacking<'_>,
    off_cpu: &OffCpuTicks,
) -> ThreadCosts {
    let (start, end) = image.lifetime(thread.record());
    let mut hook = Hook::from_header(image.recording.header());
    hook.sampled = thread.sample_cost().unwrap_or(hook.sampled);
    let mut histogram = Histogram::default();
    let mut contexts: Vec<_> = thread
        .contexts()
        .map(|context| {
            context.read_histogram(&mut histogram);
            let class = each(&context, &histogram);
            Cost::new(&context, histogram.count(), class, hook)
        })
        .collect();
    mark_uncredited(&mut contexts, image, thread);
    for at in 0..contexts.len() {
        // Framed calls share the scope of the timed ones beside them, which is not folded.
        let scope = contexts[at].scope as usize;
        if contexts[at].framed && contexts[scope].caller == contexts[at].caller {
            contexts[at].first_scope = contexts[scope].first_scope.max(at as u32);
        }
    }
    mark_open_calls(&mut contexts, end.0);
    estimates::add_off_cpu(&mut contexts, lacking);
    estimates::bound(&mut contexts, (end.0 - start.0) as f64, off_cpu);

    let mut application = (end.0 - start.0) as f64;
    let mut application_cost = 0.0;
    let mut application_uncertainty = Uncertainty::default();
    let of_measured: Vec<_> = contexts.iter().map(|context| context.uncertainty).collect();
    for at in 0..contexts.len() {
        let Cost { caller, scope, measured, open_time, inside_cost, outside_cost, .. } =
            contexts[at];
        let own = &mut contexts[scope as usize];
        own.self_time += measured + open_time;
        own.own_cost += inside_cost;
        let seen_by_caller = measured + open_time + inside_cost + outside_cost;
        // What is overestimated here is missing there.
        let uncertainty = of_measured[at];
        if caller == NOBODY {
            application -= seen_by_caller;
            application_cost += outside_cost;
            application_uncertainty -= uncertainty;
        } else {
            let caller = &mut contexts[caller as usize];
            caller.self_time -= seen_by_caller;
            caller.own_cost += outside_cost;
            caller.uncertainty -= uncertainty;
        }
    }

    estimates::fill_in(&mut contexts, &mut application, &mut application_uncertainty);
    let most = ((end.0 - start.0) as f64 - off_cpu.in_own_code).max(0.0);
    estimates::limit_errors(&mut contexts, &mut application_uncertainty, most);
    let mut overlap = clamp(&mut application, &mut application_cost);
    let mut own_cost = application_cost;
    for at in (0..contexts.len()).rev() {
        let timed_cost = contexts[at].inside_cost + contexts[at].outside_cost;
        let context = &mut contexts[at];
        overlap += clamp(&mut context.self_time, &mut context.own_cost);
        own_cost += context.own_cost;
        context.total += context.self_time;
        let Cost { caller, total, nested, first_scope, .. } = *context;
        // What folds into a caller of this context is not included here.
        context.total_is_cut = (first_scope as usize) < at;
        if caller != NOBODY {
            let caller = &mut contexts[caller as usize];
            caller.total += total;
            caller.nested += nested + timed_cost;
            caller.first_scope = caller.first_scope.min(first_scope);
        }
    }
    ThreadCosts { contexts, start, end, application, application_uncertainty, own_cost, overlap }
}

/// Marks the contexts of which calls may not have been credited.
fn mark_uncredited(contexts: &mut [Cost], image: &Image, thread: Thread<'_>) {
    for latest in latest::uncredited(image, thread) {
        let context = &mut contexts[latest.context as usize];
        (context.calls_bound, context.incomplete) = (latest.bound, true);
    }
    // It is unknown what was called then, but the callers are known; special functions are counted exactly.
    let is_forked = image.recording.header().unseen.calls_since_fork > 0;
    if is_forked && thread.record().origin == THREAD_MAIN {
        for (cost, context) in contexts.iter_mut().zip(thread.contexts()) {
            cost.incomplete |= cost.class == SlotClass::Timed || context.is_sampled();
        }
    }
}

impl ThreadCosts {
    /// Subtracts the overhead of observing system calls, in ticks, from each context and from the thread's own code,
    /// and adds it to the hook's cost.
    pub(crate) fn take_out(&mut self, of_contexts: &[Overhead], outside: Overhead) {
        let mut owed = vec![Overhead::default(); self.contexts.len()];
        for (context, &overhead) in self.contexts.iter().zip(of_contexts) {
            owed[context.scope as usize] += overhead;
        }
        // What was subtracted from each context and from those inside.
        let mut taken = vec![0.0; self.contexts.len()];
        for at in (0..self.contexts.len()).rev() {
            let context = &mut self.contexts[at];
            let own = owed[at].within(context.self_time);
            taken[at] += own;
            context.self_time -= own;
            context.total -= taken[at];
            context.nested += taken[at];
            self.own_cost += own;
            if context.caller != NOBODY {
                taken[context.caller as usize] += taken[at];
            }
        }
        let own = outside.within(self.application);
        self.application -= own;
        self.own_cost += own;
    }
}

/// What observing cost in one place, in the unit of the times that it is subtracted from.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Overhead {
    pub(crate) time: f64,
    /// The duration of the system calls that were observed, without the overhead. So much is no overhead, however that was
    /// measured.
    pub(crate) observed: f64,
}

impl Overhead {
    /// Returns the same in another unit, of which `unit` make one.
    pub(crate) fn in_units(self, unit: f64) -> Self {
        Self { time: self.time / unit, observed: self.observed / unit }
    }

    /// Returns as much of the overhead as a time may contain.
    fn within(self, time: f64) -> f64 {
        self.time.min(time - self.observed).max(0.0)
    }
}

impl AddAssign for Overhead {
    fn add_assign(&mut self, other: Self) {
        self.time += other.time;
        self.observed += other.observed;
    }
}

impl Cost {
    /// Returns how the calls were sampled.
    pub(crate) fn sampling(&self, ns_per_tick: f64) -> Sampling {
        let calls = self.timed.max(1) as f64;
        Sampling { mean_ns: self.measured * ns_per_tick / calls, part: self.samples as f64 / calls }
    }

    /// Whether calls without frames stand behind the estimate: what happens in them is measured as their callers'.
    pub(crate) fn is_partly_unseen(&self) -> bool {
        self.sampled && !self.framed && self.samples < self.timed
    }

    fn new(context: &Context<'_>, completed: u64, class: SlotClass, hook: Hook) -> Self {
        if context.is_sampled() {
            return Self::of_samples(context, class, hook);
        }
        let node = context.node();
        let unwound = u64::from(node.unwound);
        let timed = completed.saturating_add(unwound);
        let inherited = context.is_inherited();
        let begun = if inherited { timed.max(1) } else { node.calls };
        Self {
            caller: context.caller.unwrap_or(NOBODY),
            scope: context.scope,
            // The recording may be read between the two updates of a call.
            calls: if inherited { 0 } else { node.calls.max(timed) },
            incomplete: context.is_incomplete(),
            calls_bound: 0,
            timed,
            unwound,
            open: if class == SlotClass::Timed { begun.saturating_sub(timed) } else { 0 },
            samples: timed,
            squared_weights: timed as f64,
            uncertainty: Uncertainty {
                clock: CLOCK_PART * hook.inside * timed as f64,
                ..Uncertainty::default()
            },
            measured: node.total_ticks as f64 - hook.inside * timed as f64,
            open_time: 0.0,
            self_time: 0.0,
            total: 0.0,
            nested: 0.0,
            total_is_cut: false,
            inherited,
            slot: context.slot(),
            sampled: false,
            framed: false,
            class,
            first_scope: context.scope,
            last_start: node.last_start_ticks,
            own_cost: 0.0,
            inside_cost: hook.inside * timed as f64,
            outside_cost: hook.outside * timed as f64,
        }
    }

    /// Makes the costs of a context of which only some calls were timed, or none. Their time is estimated by the
    /// ratio estimator: the weighted mean of the samples times the number of calls.
    fn of_samples(context: &Context<'_>, class: SlotClass, hook: Hook) -> Self {
        let node = context.node();
        let samples = context.samples().copied().unwrap_or_default();
        let (ended, weight) = (u64::from(samples.ended), samples.weight.max(1) as f64);
        let calls = context.calls().max(ended);
        let open = u64::from(samples.begun.saturating_sub(samples.ended));
        let is_timed = ended > 0;
        let timed = if is_timed { calls.saturating_sub(open) } else { 0 };
        let mean = if is_timed { node.total_ticks as f64 / weight } else { 0.0 };
        // The cost can't exceed the duration. The excess would be counted for all calls, so it must not remain for
        // the own cost, which is that of the samples only.
        let inside = hook.inside.min(mean);
        let pairs = samples.pairs as f64;
        let untimed = if context.is_framed() { hook.framed } else { hook.counted };
        let measured = (mean - inside) * timed as f64;
        let are_full = samples.pairs_squares == u64::MAX || samples.pairs_ticks == u64::MAX;
        let variance = match ended {
            // The error may be as large as the estimate: one sample says nothing about differences, nor do sums that are full.
            1 if timed > 1 => measured * measured,
            _ if are_full => measured * measured,
            _ => {
                samples.pairs_squares as f64 * SQUARES as f64
                    - 2.0 * mean * samples.pairs_ticks as f64
                    + mean * mean * pairs
            }
        };
        Self {
            caller: context.caller.unwrap_or(NOBODY),
            scope: context.scope,
            calls,
            incomplete: context.is_incomplete(),
            calls_bound: 0,
            timed,
            samples: ended,
            squared_weights: pairs + weight,
            uncertainty: Uncertainty {
                variance: variance.max(0.0),
                common: hook.error * timed as f64,
                clock: SAMPLE_CLOCK_TICKS * timed as f64,
            },
            unwound: 0,
            open,
            measured,
            open_time: 0.0,
            self_time: 0.0,
            total: 0.0,
            nested: 0.0,
            total_is_cut: false,
            inherited: false,
            slot: context.slot(),
            sampled: true,
            framed: context.is_framed(),
            class: if is_timed || open > 0 { class } else { SlotClass::Counted },
            first_scope: context.scope,
            last_start: node.last_start_ticks,
            own_cost: 0.0,
            inside_cost: inside * ended as f64,
            outside_cost: hook.sampled * ended as f64
                + untimed * calls.saturating_sub(ended) as f64,
        }
    }
}

/// Finds the calls that were open at the end, outermost first, and adds the time since they began.
///
/// A thread is in one call at a time. So of the calls made in one scope only the latest can be open, and it began
/// after the call in which it was made. Others that seem open are on abandoned stacks: of coroutines, or abandoned by
/// `longjmp`; they are counted, without time.
fn mark_open_calls(contexts: &mut [Cost], end: u64) {
    // The latest call made in each scope; the last entry is for the thread's own code.
    let mut latest = vec![NOBODY; contexts.len() + 1];
    let place_of = |caller: u32| if caller == NOBODY { contexts.len() } else { caller as usize };
    for (at, context) in (0_u32..).zip(contexts.iter()) {
        let latest = &mut latest[place_of(context.caller)];
        if *latest == NOBODY || contexts[*latest as usize].last_start <= context.last_start {
            *latest = at;
        }
    }
    let mut chain = Vec::new();
    let mut at = latest[contexts.len()];
    // 0 is no time: the context's calls were only counted.
    let mut since = 1;
    while at != NOBODY {
        let context = &mut contexts[at as usize];
        let begun = if context.inherited { 1 } else { context.calls };
        let may_be_open = context.class != SlotClass::Counted && begun > context.timed;
        if !may_be_open || context.last_start < since {
            break;
        }
        since = context.last_start;
        context.open_time = end.saturating_sub(since) as f64;
        chain.push(at);
        // Each scope is left only once: folded recursion may lead back to an earlier one.
        at = std::mem::replace(&mut latest[context.scope as usize], NOBODY);
    }
    // Where only some calls are timed, a call without an open call inside was not timed.
    for &at in chain.iter().rev() {
        let context = &mut contexts[at as usize];
        if context.class == SlotClass::Timed {
            break;
        }
        context.open_time = 0.0;
    }
    for at in chain {
        let context = &mut contexts[at as usize];
        if context.open_time > 0.0 {
            context.open = context.open.max(1);
        }
    }
}

/// Makes a time from which the hook's cost was subtracted at least 0, by reducing that cost; returns the remaining
/// deficit.
fn clamp(time: &mut f64, own_cost: &mut f64) -> f64 {
    let missing = (-*time).max(0.0);
    let explained = missing.min(*own_cost);
    *time += missing;
    *own_cost -= explained;
    missing - explained
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_no_shorter_than_the_system_calls_in_it() {
        let overhead = Overhead { time: 300.0, observed: 800.0 };
        assert_eq!(overhead.within(1_200.0), 300.0);
        assert_eq!(overhead.within(1_000.0), 200.0);
        assert_eq!(overhead.within(700.0), 0.0);
    }
}
