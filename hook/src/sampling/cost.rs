//! What timing costs a thread: as measured at the start, and by some samples as they are taken.
//!
//! At the start, all that a sample needs is in caches. In most programs, samples are so rare that they find the
//! caches cold, and cost twice as much.

use core::hint::black_box;
use core::sync::atomic::{AtomicU64, Ordering};

use chase_format::layout::Header;

use crate::counts::Counts;
use crate::stubs::chase_probe;
use crate::thread::Thread;
use crate::{arch, clock};

/// The minimum run time in µs that is used to compute the share that timing takes of a thread's time.
const FIRST_SHARE_US: u64 = 1_000;
/// A probe times an empty sample: before each of a thread's first samples, as many as this, and after each sample, so that
/// it finds its code as cold as samples find theirs. (After one of 16, calls of 200 ns were 6 to 9 % too short on an Intel
/// processor; after one of 4, 1 % on one of AMD's.) The measurement at the start counts as `PROBES_KNOWN` probes; the mean is
/// over about `PROBES_KEPT`; a probe that took `INTERRUPTED_PROBE` means was interrupted, or found cold caches.
const FIRST_PROBES: u32 = 8;
const PROBES_KNOWN: u64 = 8;
const PROBES_KEPT: u64 = 64;
const INTERRUPTED_PROBE: u64 = 4;
/// Probes at the start are up to so many turns of a loop apart, each time a number that has this distance to the one before.
const TURNS: u64 = 32;
const APART: u64 = 19;
/// The cost of one in so many samples is measured.
const MEASURED: u64 = 4;
/// The maximum cost of a sample in ticks: what took longer was interrupted.
const INTERRUPTED_SAMPLE: u64 = 1 << 13;
/// Costs are in 1/1024 ticks.
const SCALE: u64 = 1024;

/// The costs of a call, in 1/1024 ticks.
#[derive(Clone, Copy)]
pub(crate) struct Cost {
    pub(crate) inside: u64,
    pub(crate) outside: u64,
    /// The cost of a call that is only counted, which is in its caller's time.
    pub(crate) counted: u64,
    /// Like `outside`, for a call that is a sample.
    pub(crate) sampled: u64,
    /// The recorded duration of a call of an empty function.
    pub(crate) empty: u64,
    /// Like `counted`, for a call that gets a frame.
    pub(crate) framed: u64,
    /// Like `empty`, for a sample.
    pub(crate) probed: u64,
    /// The part of `sampled` that is not measured by each sample.
    pub(crate) unmeasured: u64,
    /// The standard error of what is subtracted from a sample's duration.
    pub(crate) error: u32,
}

impl Cost {
    pub(crate) const NONE: Self = Self {
        inside: 0,
        outside: 0,
        counted: 0,
        sampled: 0,
        empty: 0,
        framed: 0,
        probed: 0,
        unmeasured: 0,
        error: 0,
    };

    /// Stores what reports subtract in the header of a recording.
    pub(crate) fn put_into(&self, header: &mut Header) {
        (header.cost_inside, header.cost_outside) = (self.inside, self.outside);
        (header.cost_counted, header.cost_sampled) = (self.counted, self.sampled);
        (header.cost_framed, header.cost_error) = (self.framed, self.error);
    }
}

/// The costs of a timed call and of a sample, in ticks.
static COST_TIMED: AtomicU64 = AtomicU64::new(0);
static COST_SAMPLED: AtomicU64 = AtomicU64::new(0);
/// The parts of a sample's cost that are in its own duration, and that are otherwise not measured.
static COST_INSIDE: AtomicU64 = AtomicU64::new(0);
static COST_UNMEASURED: AtomicU64 = AtomicU64::new(0);
/// The recorded duration of an empty call that is timed like all others, in 1/1024 ticks.
static EMPTY: AtomicU64 = AtomicU64::new(0);
/// The recorded duration of an empty sample at the start, in 1/1024 ticks.
static PROBED: AtomicU64 = AtomicU64::new(0);

/// Stores the costs of calls, as measured by this thread, the only one.
pub(crate) fn note_cost(cost: &Cost, thread: &Thread) {
    COST_TIMED.store((cost.inside + cost.outside) / SCALE, Ordering::Relaxed);
    COST_SAMPLED.store((cost.inside + cost.sampled) / SCALE, Ordering::Relaxed);
    COST_INSIDE.store(cost.inside / SCALE, Ordering::Relaxed);
    COST_UNMEASURED.store(cost.unmeasured / SCALE, Ordering::Relaxed);
    EMPTY.store(cost.empty, Ordering::Relaxed);
    PROBED.store(cost.probed, Ordering::Relaxed);
    if let Some(counts) = thread.counts.get() {
        counts.probes.set(0);
        counts.note_excess();
    }
}

/// Returns the cost of a timed call in ticks.
pub(super) fn timed_call() -> u64 {
    COST_TIMED.load(Ordering::Relaxed)
}

/// Returns the current total of the recorded durations of so many empty samples, in ticks; 0 if it can't be measured.
pub(crate) fn probe(samples: u64) -> u64 {
    if !clock::is_time_stamp() {
        return 0;
    }
    let one = |number: u64| {
        // The time stamp counter of some processors goes in steps of 10 ns. Probes at equal distances would always meet them
        // alike, which samples don't.
        for turn in 0..number * APART % TURNS {
            black_box(turn);
        }
        chase_probe()
    };
    (0..samples).map(one).sum()
}

/// Returns the time at which taking a sample begins, for [`measure_sample`]; 0 if this one is not measured. One in
/// [`MEASURED`] is, at random: two more clock reads for each would cost too much.
#[inline]
pub(crate) fn start_measuring(counts: &Counts) -> u64 {
    if counts.random.get().is_multiple_of(MEASURED) { measuring_clock() } else { 0 }
}

/// Returns the time; 0 where reading the clock would cost more than the sample.
#[inline]
fn measuring_clock() -> u64 {
    if arch::uses_time_stamp() { arch::time_stamp() } else { 0 }
}

/// Probes after a sample that was just recorded, and measures what both cost: taking the sample began at `began`, its call
/// began at `start` and ended at `end`. All in ticks; only the probe is made if `began` is 0.
#[inline]
pub(crate) fn measure_sample(thread: &Thread, began: u64, start: u64, end: u64) {
    let Some(counts) = thread.counts.get() else { return };
    counts.probe();
    if began > 0 {
        let (before, now) = (start.saturating_sub(began), measuring_clock());
        let spent = before + now.saturating_sub(end) + counts.excess.get() / SCALE;
        counts.samples_ticks.set(counts.samples_ticks.get() + spent.min(INTERRUPTED_SAMPLE));
        counts.samples.set(counts.samples.get() + 1);
    }
}

/// Resets, and returns, the number of this thread's samples whose cost was measured, and the sum of these costs in
/// ticks.
pub(crate) fn take_measured(thread: &Thread) -> (u64, u64) {
    thread.counts.get().map_or((0, 0), |counts| {
        (u64::from(counts.samples.replace(0)), counts.samples_ticks.replace(0))
    })
}

impl Counts {
    /// Measures the current cost of a sample. It can differ from that at the start by as much as tiny calls take, for
    /// example when the other hardware thread of the core is busy.
    pub(super) fn probe(&self) {
        self.probes.set(self.probes.get().saturating_add(1));
        if !clock::is_time_stamp() {
            return;
        }
        // (While the start is measuring, this only takes its time.)
        let (ticks, mean) = (chase_probe() * SCALE, self.probed());
        if ticks < mean * INTERRUPTED_PROBE {
            let answers = PROBES_KNOWN + u64::from(self.probes.get());
            // The latest probe counts as one of them. (A division by a constant takes little.)
            let part = |ticks: u64| {
                if answers < PROBES_KEPT { ticks / answers } else { ticks / PROBES_KEPT }
            };
            self.probed.set(mean - part(mean) + part(ticks));
        }
        self.note_excess();
    }

    /// Computes by how much a sample's recorded duration exceeds that of an ordinary timed call. (Not at each sample:
    /// that would take a division, and two more memory accesses.)
    fn note_excess(&self) {
        let empty = EMPTY.load(Ordering::Relaxed);
        self.excess.set(if empty == 0 { 0 } else { self.probed().saturating_sub(empty) });
    }

    /// Whether to probe before each sample.
    pub(super) fn is_new(&self) -> bool {
        self.probes.get() < FIRST_PROBES
    }

    /// Returns the current recorded duration of an empty sample, in 1/1024 ticks; 0 if unknown.
    fn probed(&self) -> u64 {
        match self.probed.get() {
            0 => PROBED.load(Ordering::Relaxed),
            probed => probed,
        }
    }

    /// Returns the recorded duration that a sample of `ticks` would have if it were timed like all other calls:
    /// rounded to whole ticks at random, so that the mean of many is right.
    pub(super) fn comparable(&self, ticks: u64) -> u64 {
        let part = self.random.get() % SCALE;
        ticks.saturating_sub((self.excess.get() + part) / SCALE)
    }

    /// Returns the share, in 1/1024, that the timing of short calls has taken of the time that a thread ran.
    pub(super) fn timing_share(&self, ran_ticks: u64, ticks_per_us: u64) -> u64 {
        let ran_ticks = ran_ticks.max(FIRST_SHARE_US * ticks_per_us);
        self.spent_ticks.get().saturating_mul(1024).checked_div(ran_ticks).unwrap_or(0)
    }

    /// Accounts for the timing of a slot's calls, all of which were timed.
    pub(super) fn spend_timed(&self, calls: u32) {
        self.spend(u64::from(calls) * timed_call());
    }

    /// Accounts for a slot's samples, and stores their measured cost in the recording.
    pub(super) fn spend_samples(&self, thread: &Thread, samples: u32) {
        let measured = self.samples.replace(0);
        if measured == 0 {
            return self.spend(u64::from(samples) * COST_SAMPLED.load(Ordering::Relaxed));
        }
        let measured = u64::from(measured);
        let outside =
            self.samples_ticks.replace(0) + measured * COST_UNMEASURED.load(Ordering::Relaxed);
        thread.note_samples(measured, outside);
        let each = outside / measured + COST_INSIDE.load(Ordering::Relaxed);
        // The cache lines that a sample found cold had replaced lines of the application, which finds as many cold
        // afterwards.
        let cold = each.saturating_sub(COST_SAMPLED.load(Ordering::Relaxed));
        self.spend(u64::from(samples) * (each + cold));
    }

    /// Adds to what the timing of short calls has cost this thread.
    fn spend(&self, ticks: u64) {
        self.spent_ticks.set(self.spent_ticks.get().saturating_add(ticks));
    }
}
