//! Time off the CPU.

/// Time off the CPU, in ns.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct OffCpu {
    pub(crate) wait_ns: f64,
    /// Ready to run while another thread did; `None` where the scheduler was not asked.
    pub(crate) preempted_ns: Option<f64>,
}

impl OffCpu {
    /// The part of `time_ns` that this is: measured twice, the two may differ a little.
    pub(crate) fn within(self, time_ns: f64) -> Self {
        let wait_ns = self.wait_ns.min(time_ns).max(0.0);
        let rest = (time_ns - wait_ns).max(0.0);
        Self { wait_ns, preempted_ns: self.preempted_ns.map(|ns| ns.min(rest)) }
    }

    pub(crate) fn add(&mut self, other: Self) {
        self.wait_ns += other.wait_ns;
        if let Some(ns) = other.preempted_ns {
            *self.preempted_ns.get_or_insert(0.0) += ns;
        }
    }
}
