//! Threads that give the processor up again and again instead of waiting.

use super::{Evidence, Finding, FindingKind, uses};
use crate::clock::Ns;

/// `sched_yield`.
const YIELD: &[u32] = &[24];
/// Fewer calls are no loop: a lock that spins for a while before it waits makes some, too.
const MANY: u64 = 10_000;
/// So many a second of the threads that make them.
const OFTEN_A_SECOND: f64 = 1_000.0;
/// The part of their time on the processor that the calls take: what is around them in the loop is not known, and comes on top.
const MATERIAL: f64 = 0.1;

/// Finds loops of `sched_yield`. Those without a call don't differ from work.
pub(super) fn spinning(evidence: &Evidence<'_>) -> Option<Finding> {
    let found =
        uses::of_system_calls(evidence, YIELD).into_iter().filter_map(|one| spins(evidence, &one));
    found.max_by_key(|finding| match finding.kind {
        FindingKind::Spinning { cpu_ns, .. } => cpu_ns,
        _ => Ns(0),
    })
}

fn spins(evidence: &Evidence<'_>, one: &uses::Use<'_>) -> Option<Finding> {
    let rows = one.threads.iter().map(|&(thread, ..)| &evidence.analysis.threads[thread as usize]);
    let lifetime: f64 = rows.clone().map(|row| row.lifetime_ns.as_f64()).sum();
    let on_cpu: f64 = rows.filter_map(|row| row.on_cpu_ns).map(Ns::as_f64).sum();
    let per_second = one.calls as f64 * 1e9 / lifetime.max(1.0);
    let of_cpu = one.cpu_ns / on_cpu.max(1.0);
    let (thread, _) = one.busiest()?;
    if one.calls < MANY
        || per_second < OFTEN_A_SECOND
        || of_cpu < MATERIAL
        || !evidence.is_material_to(thread, one.cpu_ns)
    {
        return None;
    }
    let kind = FindingKind::Spinning {
        calls: one.calls,
        per_second,
        cpu_ns: Ns::from_f64(one.cpu_ns),
        of_cpu: of_cpu.min(1.0),
    };
    Some(evidence.finding(one.group, vec![thread], one.api, 0.0, kind))
}
