//! Processes that one process has forked, whose first threads wait while others work: servers, which get their work elsewhere.

use std::collections::HashMap;

use super::{Pool, ns, woken};
use crate::spans::{Span, common_ns, parts_of};

impl Pool<'_> {
    /// Returns the other threads of each member's process; nothing of threads in one process.
    pub(super) fn beside(&self) -> HashMap<u32, Vec<u32>> {
        let threads = &self.analysis.threads;
        let process_of = |member: u32| threads[member as usize].process;
        let forks = self.members.iter().filter(|&&member| process_of(member) != self.key.1);
        let mut beside: HashMap<usize, (u32, Vec<u32>)> =
            forks.map(|&member| (process_of(member), (member, Vec::new()))).collect();
        for (thread, row) in (0..).zip(threads) {
            if let Some((member, others)) = beside.get_mut(&row.process)
                && *member != thread
            {
                others.push(thread);
            }
        }
        beside.into_values().collect()
    }

    /// Whether these threads together work for most of a span.
    pub(super) fn works_beside(&self, threads: &[u32], span: Span) -> bool {
        let worked = |&thread: &u32| {
            let row = &self.analysis.threads[thread as usize];
            let lived_ns = common_ns(&[(row.start_ns.0, row.end_ns.0)], span);
            let waits = &self.threads[thread as usize].waits;
            let waits = parts_of(waits, |wait| (wait.begin_ns, woken(wait)), span);
            let waited_ns: u64 = waits.map(|(_, part)| ns(part)).sum();
            lived_ns.saturating_sub(waited_ns)
        };
        threads.iter().map(worked).sum::<u64>() > ns(span) / 2
    }
}
