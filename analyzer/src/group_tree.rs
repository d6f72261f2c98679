//! The calling-context tree of all threads of a group, and how they differ in each context.

use serde::Serialize;

use crate::analysis::Analysis;
use crate::clock::Ns;
use crate::groups::{GroupRow, Spread, spread};

/// A context of a group. Rows are in depth-first order, like those of [`Analysis::contexts`].
#[derive(Clone, Debug, Serialize)]
pub struct GroupContext {
    /// The context, by number in [`Analysis::contexts`].
    pub context: u32,
    /// Its depth: the number of calls around it.
    pub depth: u32,
    /// The row in this table of its caller's context.
    pub parent: Option<u32>,
    /// The calling object, by number in [`Analysis::objects`].
    pub caller: u32,
    /// The API called, by number in [`Analysis::apis`].
    pub api: u32,
    /// Calls begun.
    pub calls: u64,
    /// Time including the library calls made inside.
    pub total_ns: Ns,
    /// Time without the library calls made inside.
    pub self_ns: Ns,
    /// Waits, a part of `self_ns`.
    pub wait_ns: Ns,
    /// The number of threads that were in it.
    pub threads: usize,
    /// Total time by thread, of those that were in it.
    pub spread: Spread,
}

/// Returns the tree of `group`.
#[must_use]
pub fn group_tree(analysis: &Analysis, group: &GroupRow) -> Vec<GroupContext> {
    // (context, index of the thread, its sums); several contexts of a thread may become one row.
    let mut parts: Vec<(u32, u32, [u64; 4])> = Vec::new();
    for (place, &thread) in (0..).zip(&group.members) {
        let contexts = &analysis.threads[thread as usize].contexts;
        parts.extend(contexts.iter().map(|part| {
            let sums = [part.calls, part.total_ns.0, part.self_ns.0, part.wait_ns.0];
            (part.context, place, sums)
        }));
    }
    parts.sort_unstable_by_key(|&(context, place, _)| (context, place));
    let mut rows: Vec<GroupContext> = Vec::new();
    let mut row_of = std::collections::HashMap::new();
    let mut totals = vec![0.0; group.members.len()];
    for part in parts.chunk_by(|a, b| a.0 == b.0) {
        let context = part[0].0;
        let row = &analysis.contexts[context as usize];
        totals.fill(0.0);
        let mut sums = [0_u64; 4];
        for &(_, place, own) in part {
            totals[place as usize] += own[1] as f64;
            sums.iter_mut().zip(own).for_each(|(sum, own)| *sum = sum.saturating_add(own));
        }
        row_of.insert(context, rows.len() as u32);
        let [calls, total_ns, self_ns, wait_ns] = sums;
        rows.push(GroupContext {
            context,
            depth: row.depth,
            parent: row.parent.and_then(|parent| row_of.get(&parent).copied()),
            caller: row.caller,
            api: row.api,
            calls,
            total_ns: Ns(total_ns),
            self_ns: Ns(self_ns),
            wait_ns: Ns(wait_ns),
            threads: part.chunk_by(|a, b| a.1 == b.1).count(),
            spread: spread(&group.members, totals.iter().copied()),
        });
    }
    rows
}
