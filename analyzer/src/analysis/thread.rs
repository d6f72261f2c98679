//! Threads while the run is being collected.

use std::mem::take;

use crate::clock::Ns;
use crate::costs::Cost;
use crate::names::Renumbered;
use crate::off_cpu::{Measured, OffCpu};
use crate::rows::{ThreadCreation, ThreadRow};
use crate::uncertainty::Uncertainty;

/// A thread's row, to be completed at the end.
pub(super) struct CollectedThread {
    /// Complete except for the share of its measures.
    pub(super) row: ThreadRow,
    pub(super) is_own_code_application: bool,
    pub(super) self_ns: f64,
    pub(super) off_cpu: OffCpu,
    /// Time in library calls and in own code; in the end, also in chase's own, as far as the thread's record existed.
    pub(super) measured: Measured,
    /// Time in no context: mostly before the thread's record begins, as what it waited for when `chase attach` came, or after it ends.
    pub(super) nowhere: Measured,
    /// Time in chase's own context: much of that is before the thread's record begins, or after it ends.
    pub(super) at_edges: Measured,
    pub(super) lifetime_ns: f64,
    pub(super) application_ns: f64,
    pub(super) unattributed_ns: f64,
    pub(super) unattributed_off_cpu: OffCpu,
    pub(super) application_off_cpu: OffCpu,
    /// In ns.
    pub(super) application_uncertainty: Uncertainty,
    pub(super) own_cost_ns: f64,
    /// The part of it in which the hook waited.
    pub(super) own_wait_ns: f64,
    pub(super) overlap_ns: f64,
}

impl CollectedThread {
    /// Adds to the time off the CPU what may belong to the lifetime, given the thread's time on the CPU. Outside of calls, that is
    /// no time in which own code ran. What chase itself waited is a part of its cost.
    pub(super) fn add_edges(&mut self, on_cpu: Option<Ns>) {
        let known_ns = on_cpu.map_or(0.0, Ns::as_f64) + self.measured.sum();
        let nowhere = self.nowhere.within(self.lifetime_ns - known_ns);
        let edges = self.at_edges.within(self.lifetime_ns - known_ns - nowhere.sum());
        self.application_off_cpu.measured.add(nowhere);
        self.measured.add(nowhere);
        self.measured.add(edges);
        self.application_off_cpu.lengthen(nowhere, self.application_ns);
        self.own_wait_ns =
            self.application_off_cpu.lengthen_by_runnable(edges, self.application_ns);
        self.application_ns -= self.own_wait_ns;
        self.own_cost_ns += self.own_wait_ns;
    }

    /// Where calls were only counted, it is not known what was in them, and what in own code.
    pub(super) fn give_up_own_code(&mut self) {
        self.unattributed_ns += take(&mut self.application_ns);
        self.unattributed_off_cpu.add(self.application_off_cpu);
        let OffCpu { preempted_ns, .. } = self.application_off_cpu;
        self.application_off_cpu =
            OffCpu { preempted_ns: preempted_ns.map(|_| 0.0), ..OffCpu::default() };
    }

    /// Replaces the numbers used in a part by those of the whole run.
    pub(super) fn renumber(&mut self, numbers: &Renumbered, places: &[u32]) {
        self.row.own_object = numbers.objects[self.row.own_object as usize];
        let ThreadRow { start_routine, creation_site, creation, apis, contexts, .. } =
            &mut self.row;
        let ThreadCreation { stack, words, inner_words, .. } = creation;
        let lists = [stack, words, inner_words].into_iter().flatten();
        for address in start_routine.iter_mut().chain(creation_site).chain(lists) {
            address.object = address.object.map(|object| numbers.objects[object as usize]);
        }
        apis.change(|api| api.api = numbers.apis[api.api as usize]);
        contexts.change(|part| part.context = places[part.context as usize]);
    }
}

/// Takes out what is after the end of a thread that was there until its process ended: killed by that, it waits for a
/// processor once more, to be gone. It was in its open calls, or in own code. Where it is in an open call, what it ran, in its
/// life or before, tells as well how long it waited at most.
pub(super) fn end_with_process(
    contexts: &mut [OffCpu],
    costs: &[Cost],
    own_code: &mut OffCpu,
    (lifetime_ns, ran_ns): (f64, f64),
) {
    let sum: f64 = contexts.iter().map(|off_cpu| off_cpu.measured.sum()).sum();
    let mut excess = sum + own_code.measured.sum() - lifetime_ns;
    let mut open = contexts.iter_mut().zip(costs).rev().filter(|(_, cost)| cost.open > 0);
    // Callees come after their callers.
    let innermost = open.next().map(|(off_cpu, _)| off_cpu);
    if let Some(off_cpu) = innermost {
        excess -= off_cpu.take_out((excess + ran_ns).max(0.0));
    }
    for off_cpu in open.map(|(off_cpu, _)| off_cpu).chain([own_code]) {
        if excess > 0.0 {
            excess -= off_cpu.take_out(excess);
        }
    }
    // A fork's child waits in the call that made it, before it is recorded.
    for off_cpu in contexts {
        if excess > 0.0 {
            excess -= off_cpu.take_out(excess);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_forks_child_waits_no_longer_than_it_lives() {
        let fork = OffCpu { measured: Measured::complete(0.0, 2e6), ..OffCpu::default() };
        let (mut contexts, mut own_code) = ([fork], OffCpu::default());
        // None of its calls is open any more.
        end_with_process(&mut contexts, &[], &mut own_code, (2e5, 1e5));
        assert!(contexts[0].measured.sum() <= 2e5, "{contexts:?}");
    }
}
