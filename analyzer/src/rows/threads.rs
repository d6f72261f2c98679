//! Sums of the parts of a thread's time.

use super::ThreadRow;
use crate::clock::Ns;

impl ThreadRow {
    /// What the thread waited outside of calls, or of those that were timed; `None` if the scheduler was not observed.
    #[must_use]
    pub fn outside_wait_ns(&self) -> Option<Ns> {
        let own = self.application_wait_ns?;
        Some(Ns(own.0.saturating_add(self.unattributed_wait_ns.0)))
    }

    /// For how long others had the processor meanwhile; likewise.
    #[must_use]
    pub fn outside_preempted_ns(&self) -> Option<Ns> {
        let own = self.application_preempted_ns?;
        Some(Ns(own.0.saturating_add(self.unattributed_preempted_ns.0)))
    }

    /// Returns by how much application time, self times and own cost together differ from the lifetime, as a fraction
    /// of it.
    #[must_use]
    pub fn conservation_error(&self) -> f64 {
        let parts =
            [self.application_ns, self.unattributed_ns, self.measures.self_ns, self.own_cost_ns];
        let lifetime = self.lifetime_ns.as_f64();
        let missed = (parts.iter().map(|part| part.as_f64()).sum::<f64>() - lifetime).abs();
        if missed == 0.0 { 0.0 } else { missed / lifetime }
    }
}
