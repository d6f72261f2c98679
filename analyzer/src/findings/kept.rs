//! What keeps threads from running in their calls: others that they wait for, or that have the processors.

use std::collections::{BTreeMap, HashMap};

use super::Evidence;
use crate::causes::{PartyKind, Purpose};

/// By thread and API: waits for locks, at barriers, and for actions of other threads of the run.
pub(super) fn waits_for_threads(evidence: &Evidence<'_>) -> HashMap<(u32, u32), f64> {
    let mut sums = HashMap::new();
    for row in &evidence.watched.causes {
        let Some(api) = row.api else { continue };
        let by_threads = || row.wakers.iter().any(|waker| waker.kind == PartyKind::Thread);
        let is_shared = row.purpose.is_handover() || row.purpose == Purpose::Barrier;
        let is_stopped = row.purpose == Purpose::Stopped;
        if row.purpose.is_lock() || is_stopped || is_shared && by_threads() {
            for span in &row.by_thread {
                *sums.entry((span.thread, api)).or_default() += span.ns.as_f64();
            }
        }
    }
    sums
}

/// What keeps threads from running in their calls, ns.
pub(super) struct Kept<'a> {
    /// See [`waits_for_threads`].
    pub(super) awaited: &'a HashMap<(u32, u32), f64>,
    /// For how long others had the processor, by thread and API.
    pub(super) preempted_ns: &'a dyn Fn(u32, u32) -> f64,
}

/// Returns how long a thread waits for other threads, or for a processor, in calls made inside those of a context, beyond the time of as
/// many usual calls.
pub(super) fn kept_ns_inside(
    evidence: &Evidence<'_>,
    kept: &Kept<'_>,
    (thread, context): (u32, u32),
    median_ns: f64,
) -> f64 {
    let rows = &evidence.analysis.contexts;
    let depth = rows[context as usize].depth;
    // Rows are in depth-first order.
    let first = context as usize + 1;
    let more = rows[first..].iter().take_while(|row| row.depth > depth).count();
    let row = &evidence.analysis.threads[thread as usize];
    let (mut calls, mut of_apis) = (0.0, BTreeMap::<u32, (f64, f64)>::new());
    for part in &row.contexts {
        if part.context == context {
            calls += part.calls as f64;
        } else if (first..first + more).contains(&(part.context as usize)) {
            let (wait_ns, self_ns) = of_apis.entry(rows[part.context as usize].api).or_default();
            *wait_ns += part.wait_ns.as_f64();
            *self_ns += part.self_ns.as_f64();
        }
    }
    let all_ns: BTreeMap<u32, f64> =
        row.apis.iter().map(|own| (own.api, own.self_ns.as_f64())).collect();
    let kept_ns = |(api, (wait_ns, self_ns)): (u32, (f64, f64))| {
        // Others have the processor as often in these calls of the function as in all.
        let part = self_ns / all_ns.get(&api).copied().unwrap_or(0.0).max(self_ns).max(1.0);
        wait_ns.min(kept.awaited.get(&(thread, api)).copied().unwrap_or(0.0))
            + part * (kept.preempted_ns)(thread, api)
    };
    of_apis.into_iter().map(kept_ns).sum::<f64>() - calls * median_ns
}
