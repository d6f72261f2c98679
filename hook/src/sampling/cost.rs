//! What timing costs a thread: as measured at the start, and of some samples as they are made.
//!
//! At the start caches have all that a sample needs; what is made so rarely finds them cold in most
//! programs, and costs twice as much there.

use core::sync::atomic::{AtomicU64, Ordering};

use chase_format::layout::Header;

use crate::counts::Counts;
use crate::stubs::chase_probe;
use crate::thread::Thread;
use crate::{arch, clock};

/// A thread is taken to have run for so many µs at least when timing's share of its time is computed.
const FIRST_SHARE_US: u64 = 1_000;
/// A probe times an empty sample: before each of so many first samples of a thread, and then with each choice of a block.
/// What was measured at the start counts as so many probes; the mean is over so many, about; and a probe that took as
/// many means was interrupted, or found cold caches.
const FIRST_PROBES: u32 = 8;
const PROBES_KNOWN: u64 = 8;
const PROBES_KEPT: u64 = 32;
const INTERRUPTED_PROBE: u64 = 4;
/// Of one in so many samples the cost is measured.
const MEASURED: u64 = 4;
/// What a sample costs at most, in ticks: beyond that, it was interrupted.
const INTERRUPTED_SAMPLE: u64 = 1 << 13;
/// Costs are kept in 1/1024 ticks.
const SCALE: u64 = 1024;

/// What a call costs, in 1/1024 ticks.
#[derive(Clone, Copy)]
pub(crate) struct Cost {
    pub(crate) inside: u64,
    pub(crate) outside: u64,
    /// Of a call that is only counted; its caller sees it.
    pub(crate) counted: u64,
    /// As `outside`, of a call that is a sample.
    pub(crate) sampled: u64,
    /// The recorded duration of a call of an empty function.
    pub(crate) empty: u64,
    /// As `counted`, of a call that gets a frame.
    pub(crate) framed: u64,
    /// As `empty`, of a sample.
    pub(crate) probed: u64,
    /// What is in `sampled` and is not measured of each sample.
    pub(crate) unmeasured: u64,
    /// Standard error of what is taken off a sample's duration.
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

    /// Puts what reports subtract into the header of a recording.
    pub(crate) fn put_into(&self, header: &mut Header) {
        (header.cost_inside, header.cost_outside) = (self.inside, self.outside);
        (header.cost_counted, header.cost_sampled) = (self.counted, self.sampled);
        (header.cost_framed, header.cost_error) = (self.framed, self.error);
    }
}

/// What a timed call and a sample cost, in ticks.
static COST_TIMED: AtomicU64 = AtomicU64::new(0);
static COST_SAMPLED: AtomicU64 = AtomicU64::new(0);
/// What is in that of a sample's own duration, and what else no clock is read for.
static COST_INSIDE: AtomicU64 = AtomicU64::new(0);
static COST_UNMEASURED: AtomicU64 = AtomicU64::new(0);
/// What is recorded of an empty call that is timed like all others, in 1/1024 ticks.
static EMPTY: AtomicU64 = AtomicU64::new(0);
/// What was recorded of an empty sample at the start, in 1/1024 ticks.
static PROBED: AtomicU64 = AtomicU64::new(0);

/// Notes what calls cost, as measured by this thread, the only one.
pub(crate) fn note_cost(cost: &Cost, thread: &Thread) {
    COST_TIMED.store((cost.inside + cost.outside) / SCALE, Ordering::Relaxed);
    COST_SAMPLED.store((cost.inside + cost.sampled) / SCALE, Ordering::Relaxed);
    COST_INSIDE.store(cost.inside / SCALE, Ordering::Relaxed);
    COST_UNMEASURED.store(cost.unmeasured / SCALE, Ordering::Relaxed);
    EMPTY.store(cost.empty, Ordering::Relaxed);
    PROBED.store(cost.probed, Ordering::Relaxed);
    if let Some(counts) = thread.counts.get() {
        counts.note_excess();
    }
}

/// What a timed call costs, in ticks.
pub(super) fn timed_call() -> u64 {
    COST_TIMED.load(Ordering::Relaxed)
}

/// What is recorded of so many empty samples at the moment, in ticks; 0 if that is not known.
pub(crate) fn probe(samples: u64) -> u64 {
    if clock::is_time_stamp() { (0..samples).map(|_| chase_probe()).sum() } else { 0 }
}

/// The time at which the making of a sample begins, for [`measure_sample`]; 0 if this one is not to be measured. One
/// of [`MEASURED`] is, at random: two more clock reads cost too much.
#[inline]
pub(crate) fn start_measuring(counts: &Counts) -> u64 {
    if counts.random.get().is_multiple_of(MEASURED) { measuring_clock() } else { 0 }
}

/// The time; 0 where reading it would cost more than the sample.
#[inline]
fn measuring_clock() -> u64 {
    if arch::uses_time_stamp() { arch::time_stamp() } else { 0 }
}

/// A sample that began to be one at `began`, the call in it at `start`, and which ended at `end`, has been
/// recorded just now. All in ticks; `began` may be 0.
#[inline]
pub(crate) fn measure_sample(thread: &Thread, began: u64, start: u64, end: u64) {
    if began > 0 {
        add_measured(thread, began, start, end);
    }
}

fn add_measured(thread: &Thread, began: u64, start: u64, end: u64) {
    if let Some(counts) = thread.counts.get() {
        let (before, now) = (start.saturating_sub(began), measuring_clock());
        let spent = before + now.saturating_sub(end) + counts.excess.get() / SCALE;
        counts.samples_ticks.set(counts.samples_ticks.get() + spent.min(INTERRUPTED_SAMPLE));
        counts.samples.set(counts.samples.get() + 1);
    }
}

/// Takes the number of this thread's samples whose cost was measured since the last call, and the sum of these costs,
/// in ticks.
pub(crate) fn take_measured(thread: &Thread) -> (u64, u64) {
    thread.counts.get().map_or((0, 0), |counts| {
        (u64::from(counts.samples.replace(0)), counts.samples_ticks.replace(0))
    })
}

impl Counts {
    /// Measures what a sample costs just now. That differs from what it was at the start by as much as tiny
    /// calls take: when the other half of the processor works, for one.
    pub(super) fn probe(&self) {
        self.probes.set(self.probes.get().saturating_add(1));
        if !clock::is_time_stamp() {
            return;
        }
        let (ticks, mean) = (chase_probe() * SCALE, self.probed());
        if ticks < mean * INTERRUPTED_PROBE {
            let answers = PROBES_KEPT.min(PROBES_KNOWN + u64::from(self.probes.get()));
            // What the latest differs by counts as one of them.
            self.probed.set(mean - mean / answers + ticks / answers);
        }
        self.note_excess();
    }

    /// Notes what is recorded of a sample beyond what would be if it were timed like all other calls. (Not
    /// asked at each sample: that would be a division, and two more places in memory.)
    fn note_excess(&self) {
        let empty = EMPTY.load(Ordering::Relaxed);
        let (now, then) = (self.probed(), PROBED.load(Ordering::Relaxed));
        // Whatever else the machine does makes an ordinary call slower too.
        let empty_now = (empty * now).checked_div(then).unwrap_or(empty);
        self.excess.set(if empty == 0 { 0 } else { now.saturating_sub(empty_now) });
    }

    /// Whether each sample is to be probed before.
    pub(super) fn is_new(&self) -> bool {
        self.probes.get() < FIRST_PROBES
    }

    /// What is recorded of an empty sample now, in 1/1024 ticks; 0 if it is not known.
    fn probed(&self) -> u64 {
        match self.probed.get() {
            0 => PROBED.load(Ordering::Relaxed),
            probed => probed,
        }
    }

    /// What would be recorded of a sample of `ticks` if it were timed like all other calls: whole ticks, such that
    /// the mean of many is right.
    pub(super) fn comparable(&self, ticks: u64) -> u64 {
        let part = self.random.get() % SCALE;
        ticks.saturating_sub((self.excess.get() + part) / SCALE)
    }

    /// What the timing of short calls took of a thread's life of so many ticks, in 1/1024.
    pub(super) fn timing_share(&self, life_ticks: u64, ticks_per_us: u64) -> u64 {
        let life_ticks = life_ticks.max(FIRST_SHARE_US * ticks_per_us);
        self.spent_ticks.get().saturating_mul(1024).checked_div(life_ticks).unwrap_or(0)
    }

    /// So many calls of a slot were timed, like all before them.
    pub(super) fn spend_timed(&self, calls: u32) {
        self.spend(u64::from(calls) * timed_call());
    }

    /// So many samples of a slot were made. Tells the recording what samples were measured to cost.
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
        // What it has found cold was in use by the application, which finds as much cold then.
        let cold = each.saturating_sub(COST_SAMPLED.load(Ordering::Relaxed));
        self.spend(u64::from(samples) * (each + cold));
    }

    /// Adds to what the timing of short calls has cost this thread.
    fn spend(&self, ticks: u64) {
        self.spent_ticks.set(self.spent_ticks.get().saturating_add(ticks));
    }
}
