//! When somebody waits for a pool of threads.

use std::collections::HashMap;

use super::woken;
use crate::analysis::Analysis;
use crate::causes::Purpose;
use crate::ends::forked_by;
use crate::groups::Groups;
use crate::long_waits::OffCpuTimes;
use crate::spans::Span;

/// The numbers of a group and of a process: of processes that were forked, that is the one that forked them.
pub(super) type PoolKey = (u32, usize);

/// A time in which somebody waits for a pool.
pub(super) struct AwaitedIn {
    pub(super) span: Span,
    /// The group of the thread that waits.
    pub(super) by: u32,
    /// The thread of the pool that ends the wait.
    pub(super) for_thread: u32,
}

/// When somebody waits for a pool, in order and without overlaps.
pub(super) type Awaited = Vec<AwaitedIn>;

pub(super) fn key_of(analysis: &Analysis, groups: &Groups, thread: u32) -> Option<PoolKey> {
    let (&group, row) =
        (groups.of_thread.get(thread as usize)?, analysis.threads.get(thread as usize)?);
    Some((group, forked_by(analysis, row).unwrap_or(row.process)))
}

/// Returns the times in which a thread outside of a group waits for a thread of it, by the pool of that one.
pub(super) fn awaited(
    analysis: &Analysis,
    groups: &Groups,
    threads: &[OffCpuTimes],
) -> HashMap<PoolKey, Awaited> {
    let mut found: HashMap<PoolKey, Awaited> = HashMap::new();
    for (own, &group) in threads.iter().zip(&groups.of_thread) {
        for wait in &own.waits {
            let purpose = wait.wait.purpose;
            let is_fork = |waker: u32| forked_by(analysis, &analysis.threads[waker as usize]);
            // (Who has forked processes waits for their results and for their ends at once.)
            let is_result = match purpose {
                Purpose::Join | Purpose::Child => true,
                Purpose::Readiness => wait.waker.and_then(is_fork).is_some(),
                _ => purpose.is_handover(),
            };
            let Some(for_thread) = wait.waker.filter(|_| is_result) else { continue };
            let key = key_of(analysis, groups, for_thread);
            if let Some(key) = key.filter(|&(of, _)| of != group) {
                let span = (wait.begin_ns, woken(wait));
                found.entry(key).or_default().push(AwaitedIn { span, by: group, for_thread });
            }
        }
    }
    for awaited in found.values_mut() {
        awaited.sort_unstable_by_key(|one| (one.span, one.by, one.for_thread));
        let mut end = 0;
        awaited.retain_mut(|AwaitedIn { span, .. }| {
            span.0 = span.0.max(end);
            end = end.max(span.1);
            span.0 < span.1
        });
    }
    found
}
