//! Time off the CPU.

use serde::{Deserialize, Serialize};

use crate::clock::Ns;

/// Where waits are from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WaitSource {
    /// The kernel's scheduler: measured.
    Scheduler,
    /// The threads themselves, which asked after each call of 50 µs or more: measured, but for what was shorter.
    Asked,
    /// The names of functions: an estimate.
    #[default]
    Name,
    /// Different for some processes and for others.
    Mixed,
}

/// Time off the CPU as the scheduler has measured it. Unlike [`Measures::wait_ns`](crate::Measures::wait_ns) it is no part of a self time, which
/// may be an estimate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct MeasuredOffCpu {
    /// Waiting for anything but a processor; `None` where it was not measured of all threads.
    pub blocked_ns: Option<Ns>,
    /// Waiting for a processor; likewise.
    pub runnable_ns: Option<Ns>,
}

/// Time off the CPU, in ns.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct OffCpu {
    pub(crate) wait_ns: f64,
    /// Ready to run while another thread did; `None` where the scheduler was not asked.
    pub(crate) preempted_ns: Option<f64>,
    /// Both as they were measured, whatever time the calls are thought to have taken.
    pub(crate) measured: Measured,
}

/// What the scheduler has measured of a set of calls, in ns.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Measured {
    blocked: f64,
    runnable: f64,
    /// Some of it nobody measured.
    is_partial: bool,
}

impl Measured {
    /// Of calls that nobody watched.
    pub(crate) const NOTHING: Self = Self { blocked: 0.0, runnable: 0.0, is_partial: true };

    pub(crate) fn complete(blocked: f64, runnable: f64) -> Self {
        Self { blocked, runnable, is_partial: false }
    }

    pub(crate) fn add(&mut self, other: Self) {
        self.blocked += other.blocked;
        self.runnable += other.runnable;
        self.is_partial |= other.is_partial;
    }

    pub(crate) fn off_cpu(self) -> MeasuredOffCpu {
        let told = |ns| (!self.is_partial).then(|| Ns::from_f64(ns));
        MeasuredOffCpu { blocked_ns: told(self.blocked), runnable_ns: told(self.runnable) }
    }
}

impl OffCpu {
    /// The part of `time_ns` that this is: measured twice, the two may differ a little.
    pub(crate) fn within(self, time_ns: f64) -> Self {
        let wait_ns = self.wait_ns.min(time_ns).max(0.0);
        let rest = (time_ns - wait_ns).max(0.0);
        let preempted_ns = self.preempted_ns.map(|ns| ns.min(rest));
        Self { wait_ns, preempted_ns, measured: self.measured }
    }

    pub(crate) fn add(&mut self, other: Self) {
        self.wait_ns += other.wait_ns;
        if let Some(ns) = other.preempted_ns {
            *self.preempted_ns.get_or_insert(0.0) += ns;
        }
        self.measured.add(other.measured);
    }
}
