//! Processes that one process has forked, and that are no pool: one feeds another.

use std::collections::{HashMap, HashSet};

use super::{Pool, ns, woken};
use crate::causes::WaitObject;
use crate::spans::{Span, parts_of};

/// What members of a pool wait for to have something to do, by thread.
pub(super) type IdleAt<'a> = HashMap<u32, HashSet<&'a WaitObject>>;

impl Pool<'_> {
    /// Returns what processes of the pool wait for; nothing of threads in one process.
    pub(super) fn idle_at(&self) -> IdleAt<'_> {
        let of = |member: u32| {
            let idle = self.threads[member as usize].waits.iter().map(|wait| &wait.wait);
            idle.filter(|wait| self.is_idle(wait)).map(|wait| &wait.object).collect()
        };
        let process_of = |member: u32| self.analysis.threads[member as usize].process;
        let forks = self.members.iter().filter(|&&member| process_of(member) != self.key.1);
        forks.map(|&member| (member, of(member))).collect()
    }

    /// Whether the others wait meanwhile for what the one that works hands to them: that is a stage of a pipeline. Who shares work waits
    /// for more of it where the others do, too. (Threads of a group run the same function; what one process has forked need not.)
    pub(super) fn feeds(&self, alone: u32, span: Span, idle_at: &IdleAt<'_>) -> bool {
        let Some(own) = idle_at.get(&alone) else { return false };
        let (mut all_ns, mut fed_ns) = (0_u64, 0_u64);
        for &member in self.members.iter().filter(|&&member| member != alone) {
            let waits = &self.threads[member as usize].waits;
            for (wait, part) in parts_of(waits, |wait| (wait.begin_ns, woken(wait)), span) {
                if self.is_idle(&wait.wait) {
                    all_ns += ns(part);
                    if wait.waker == Some(alone) && !own.contains(&wait.wait.object) {
                        fed_ns += ns(part);
                    }
                }
            }
        }
        fed_ns > all_ns / 2
    }
}
