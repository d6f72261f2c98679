//! The useful time of each thread of a group in each API.

use std::collections::BTreeMap;

use crate::analysis::Analysis;
use crate::clock::Ns;
use crate::clusters::Point;
use crate::rows::ThreadRow;

/// Stands for a thread's own code among its APIs.
pub(super) const OWN_CODE: u32 = u32::MAX;

/// Useful times by API and by thread. Threads are numbered by their index in the group.
pub(super) struct Vectors {
    /// Useful time of each thread, in ns.
    pub(super) useful: Vec<f64>,
    /// Lifetime of each thread, in ns.
    pub(super) lifetimes: Vec<f64>,
    /// The APIs, in no particular order.
    pub(super) apis: Vec<ApiVector>,
}

/// The values of one API that are not zero.
pub(super) struct ApiVector {
    pub(super) api: u32,
    pub(super) calls: u64,
    pub(super) entries: Vec<Entry>,
}

/// What a thread spent in an API, in ns.
#[derive(Clone, Copy)]
pub(super) struct Entry {
    pub(super) thread: u32,
    pub(super) useful: f64,
    pub(super) wait: f64,
}

impl Vectors {
    pub(super) fn new(analysis: &Analysis, members: &[u32]) -> Self {
        let threads = || members.iter().map(|&thread| &analysis.threads[thread as usize]);
        // The vectors are as large as the tables of threads, so they are allocated with their final size.
        let mut counts: BTreeMap<u32, usize> = BTreeMap::from([(OWN_CODE, members.len())]);
        for api in threads().flat_map(|row| &row.apis) {
            *counts.entry(api.api).or_default() += 1;
        }
        let empty =
            |(api, count)| (api, ApiVector { api, calls: 0, entries: Vec::with_capacity(count) });
        let mut apis: BTreeMap<u32, ApiVector> = counts.into_iter().map(empty).collect();
        for (thread, row) in (0..).zip(threads()) {
            // What contradictory data count twice is taken from each alike.
            let all = on_cpu_ns(row);
            let part = if all > 0.0 { useful_ns(row) / all } else { 1.0 };
            let mut add = |api: u32, calls: u64, all: Ns, wait: Ns, preempted: Ns| {
                let wait = wait.as_f64();
                let useful = (all.as_f64() - wait - preempted.as_f64()).max(0.0) * part;
                if let Some(vector) = apis.get_mut(&api) {
                    vector.calls = vector.calls.saturating_add(calls);
                    vector.entries.push(Entry { thread, useful, wait });
                }
            };
            let known = |part: Option<Ns>| part.unwrap_or(Ns(0));
            let (wait, preempted) = (row.outside_wait_ns(), row.application_preempted_ns);
            add(OWN_CODE, 0, row.application_ns, known(wait), known(preempted));
            for api in &row.apis {
                add(api.api, api.calls, api.self_ns, api.wait_ns, api.preempted_ns);
            }
        }
        let apis = apis.into_values().collect();
        let useful = threads().map(useful_ns).collect();
        let lifetimes = threads().map(|row| row.lifetime_ns.as_f64()).collect();
        Self { useful, lifetimes, apis }
    }

    /// Returns each thread's distribution of useful time, as shares by API.
    pub(super) fn points(&self) -> Vec<Point> {
        let mut points = vec![Point::new(); self.useful.len()];
        for api in &self.apis {
            for entry in &api.entries {
                let whole = self.useful[entry.thread as usize];
                if entry.useful > 0.0 && whole > 0.0 {
                    points[entry.thread as usize].push((api.api, entry.useful / whole));
                }
            }
        }
        points
    }
}

/// Returns application and library time on the CPU, as far as known: without waits, and without the time in which
/// other threads ran instead. What contradictory data count twice is not useful twice.
pub(super) fn useful_ns(thread: &ThreadRow) -> f64 {
    (on_cpu_ns(thread) - thread.overlap_ns.as_f64()).max(0.0)
}

/// The same, with what is counted twice.
fn on_cpu_ns(thread: &ThreadRow) -> f64 {
    let on_cpu = |all: Ns, wait: Option<Ns>, preempted: Option<Ns>| {
        let off = [wait, preempted].into_iter().flatten().map(Ns::as_f64).sum::<f64>();
        (all.as_f64() - off).max(0.0)
    };
    let library = &thread.measures;
    on_cpu(library.self_ns, Some(library.wait_ns), library.preempted_ns)
        + on_cpu(thread.application_ns, thread.application_wait_ns, thread.application_preempted_ns)
        + on_cpu(
            thread.unattributed_ns,
            Some(thread.unattributed_wait_ns),
            Some(thread.unattributed_preempted_ns),
        )
}
