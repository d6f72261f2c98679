//! Time off the CPU.

mod spells;

use serde::{Deserialize, Serialize};

use crate::clock::Ns;

pub(crate) use spells::{Missing, Sampling, Spells};

/// How waits were measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WaitSource {
    /// By the kernel's scheduler.
    Scheduler,
    /// By the threads themselves, which asked the kernel after each call of 50 µs or more; shorter waits are missing.
    Asked,
    /// Not measured: estimated by the names of functions.
    #[default]
    Name,
    /// In different ways for different processes.
    Mixed,
}

/// Time off the CPU as measured by the scheduler. Unlike [`Measures::wait_ns`](crate::Measures::wait_ns) it is not
/// part of a self time, which may be an estimate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct MeasuredOffCpu {
    /// Waiting for anything except a processor, until woken; `None` if it was not measured for all threads.
    pub blocked_ns: Option<Ns>,
    /// Waiting for a processor, after being woken or while others ran; likewise.
    pub runnable_ns: Option<Ns>,
}

/// Time off the CPU, in ns.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct OffCpu {
    pub(crate) wait_ns: f64,
    /// Ready to run while another thread ran; `None` if the scheduler was not observed.
    pub(crate) preempted_ns: Option<f64>,
    /// The part of that after waits, from being woken to running again.
    pub(crate) woken_ns: f64,
    /// Both as measured, independently of the calls' estimated times.
    pub(crate) measured: Measured,
}

/// What the scheduler measured for a set of calls, in ns.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Measured {
    blocked: f64,
    runnable: f64,
    /// Whether some of it was not measured.
    is_partial: bool,
}

impl Measured {
    /// For calls that were not observed.
    pub(crate) const NOTHING: Self = Self { blocked: 0.0, runnable: 0.0, is_partial: true };

    pub(crate) fn complete(blocked: f64, runnable: f64) -> Self {
        Self { blocked, runnable, is_partial: false }
    }

    pub(crate) fn add(&mut self, other: Self) {
        self.blocked += other.blocked;
        self.runnable += other.runnable;
        self.is_partial |= other.is_partial;
    }

    pub(crate) fn sum(self) -> f64 {
        self.blocked + self.runnable
    }

    /// Returns the same part of both, so that they are not longer than `ns` together.
    pub(crate) fn within(self, ns: f64) -> Self {
        let sum = self.sum();
        let part = if sum > ns { (ns / sum).max(0.0) } else { 1.0 };
        Self { blocked: self.blocked * part, runnable: self.runnable * part, ..self }
    }

    pub(crate) fn off_cpu(self) -> MeasuredOffCpu {
        let if_complete = |ns| (!self.is_partial).then(|| Ns::from_f64(ns));
        MeasuredOffCpu {
            blocked_ns: if_complete(self.blocked),
            runnable_ns: if_complete(self.runnable),
        }
    }
}

impl OffCpu {
    /// Time in which others had the processor, as far as nobody measured where.
    pub(crate) fn preempted(ns: f64) -> Self {
        Self { preempted_ns: Some(ns), ..Self::default() }
    }

    /// Limits it to `time_ns`: the two were measured separately and may differ slightly.
    pub(crate) fn within(self, time_ns: f64) -> Self {
        let wait_ns = self.wait_ns.min(time_ns).max(0.0);
        let rest = (time_ns - wait_ns).max(0.0);
        let preempted_ns = self.preempted_ns.map(|ns| ns.min(rest));
        let woken_ns = self.woken_ns.min(preempted_ns.unwrap_or(0.0));
        Self { wait_ns, preempted_ns, woken_ns, measured: self.measured }
    }

    /// Counts so much of the waits as time after being woken, in which the thread was ready to run.
    pub(crate) fn end_waits_earlier(&mut self, by_ns: f64) {
        let by_ns = by_ns.min(self.wait_ns);
        self.wait_ns -= by_ns;
        *self.preempted_ns.get_or_insert(0.0) += by_ns;
        self.woken_ns += by_ns;
        self.measured.blocked -= by_ns;
        self.measured.runnable += by_ns;
    }

    /// Takes up to so much out of what was measured and is not in the calls' time, of waiting for a processor first. Returns how
    /// much that was.
    pub(crate) fn take_out(&mut self, ns: f64) -> f64 {
        let Measured { blocked, runnable, .. } = self.measured;
        let of_runnable = (runnable - self.preempted_ns.unwrap_or(0.0)).min(ns).max(0.0);
        let of_blocked = (blocked - self.wait_ns).min(ns - of_runnable).max(0.0);
        self.measured.runnable -= of_runnable;
        self.measured.blocked -= of_blocked;
        of_runnable + of_blocked
    }

    /// Adds what was measured in the same time, as far as that has room in `time_ns`; not to what was measured here. Only
    /// where the scheduler was observed.
    pub(crate) fn lengthen(&mut self, by: Measured, time_ns: f64) {
        self.wait_ns += self.lengthen_by_runnable(by, time_ns);
    }

    /// The same with the time of waiting for a processor only; returns as much of the rest as had room.
    pub(crate) fn lengthen_by_runnable(&mut self, by: Measured, time_ns: f64) -> f64 {
        let Some(preempted_ns) = &mut self.preempted_ns else { return 0.0 };
        let Measured { blocked, runnable, .. } = by.within(time_ns - self.wait_ns - *preempted_ns);
        *preempted_ns += runnable;
        blocked
    }

    pub(crate) fn add(&mut self, other: Self) {
        self.wait_ns += other.wait_ns;
        if let Some(ns) = other.preempted_ns {
            *self.preempted_ns.get_or_insert(0.0) += ns;
        }
        self.woken_ns += other.woken_ns;
        self.measured.add(other.measured);
    }
}
