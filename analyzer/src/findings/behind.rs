//! What threads gain without some calls: their own, and those of others that they wait behind, because these have a lock meanwhile.

use std::collections::BTreeMap;

use super::Evidence;
use crate::bounds::Bounds;
use crate::causes::PartyKind;
use crate::clock::Ns;

/// Of threads that make calls of a function, each for so long, returns the one that gains most without them, and how much.
pub(super) fn gains_most(
    evidence: &Evidence<'_>,
    (group, api): (u32, Option<u32>),
    own: &[(u32, f64)],
) -> Option<(u32, f64)> {
    let waits = waits_behind(evidence, group, api);
    let all_ns: f64 = own.iter().map(|(_, ns)| ns).sum();
    // (Who has the lock may do more with it than this.)
    let gain = |&(thread, ns): &(u32, f64)| {
        let waited = waits.get(&thread).copied().unwrap_or(0.0);
        (thread, ns + waited.min(all_ns - ns))
    };
    own.iter().map(gain).max_by(|a, b| a.1.total_cmp(&b.1).then(b.0.cmp(&a.0)))
}

/// How long each thread waits for locks while those of a group that have them are in calls of a function.
fn waits_behind(evidence: &Evidence<'_>, group: u32, api: Option<u32>) -> BTreeMap<u32, f64> {
    let mut waits = BTreeMap::<u32, f64>::new();
    for row in evidence.watched.causes.iter().filter(|row| row.purpose.is_lock()) {
        let there = row.holders.iter().filter(|holder| {
            (holder.kind, holder.group, holder.api) == (PartyKind::Thread, Some(group), api)
        });
        let ns: f64 = there.map(|holder| holder.wait_ns.as_f64()).sum();
        let part = (ns / row.wait_ns.as_f64().max(1.0)).min(1.0);
        for span in row.by_thread.iter().filter(|_| part > 0.0) {
            *waits.entry(span.thread).or_default() += part * span.ns.as_f64();
        }
    }
    waits
}

/// How much sooner the run would be done without all calls of a function, by its long waits: then the thread that ends last gains
/// as much. Who has a lock is not always known, nor are all waits for locks.
pub(super) fn run_gains(evidence: &Evidence<'_>, api: Option<u32>) -> f64 {
    let &Evidence { analysis, groups, watched, .. } = evidence;
    let bounds = |times| Bounds { analysis, groups, causes: &watched.causes, times };
    let gain = watched.times.as_deref().zip(api);
    gain.and_then(|(times, api)| bounds(times).of_long_calls(api)).map_or(0.0, Ns::as_f64)
}
