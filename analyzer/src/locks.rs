//! Locks that threads waited for, whoever waited where.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::address::CodeAddress;
use crate::analysis::Analysis;
use crate::causes::{CauseRow, Party, Purpose, WaitObject};
use crate::clock::Ns;

/// A lock. One that nobody ever waited for is not seen.
#[derive(Clone, Debug, Serialize)]
pub struct LockRow {
    /// What kind of lock.
    pub purpose: Purpose,
    /// Which one.
    pub object: WaitObject,
    /// A process that the addresses are of.
    #[serde(skip)]
    pub process: usize,
    /// Waits. For one acquisition a thread may wait several times.
    pub waits: u64,
    /// Their time.
    pub wait_ns: Ns,
    /// The longest.
    pub max_ns: Ns,
    /// Threads that waited.
    pub threads: usize,
    /// Acquisitions, at most, by the threads that waited: their calls of the functions in which they waited, for whichever
    /// lock. Those that nobody had to wait for are not told by lock.
    pub acquisitions_at_most: u64,
    /// Where they waited longest: the API, by number in [`Analysis::apis`], and the return address of the call.
    pub api: Option<u32>,
    /// See `api`.
    pub site: Option<CodeAddress>,
    /// Who had it meanwhile, longest first; empty where the lock does not tell.
    pub holders: Vec<Party>,
    /// Who let go of it when the waits ended, longest first.
    pub wakers: Vec<Party>,
}

/// Locks by how long they were waited for, longest first.
#[must_use]
pub fn locks(causes: &[CauseRow], analysis: &Analysis) -> Vec<LockRow> {
    let mut of_locks: BTreeMap<_, Vec<&CauseRow>> = BTreeMap::new();
    for row in causes.iter().filter(|row| row.purpose.is_lock()) {
        let WaitObject::Memory(at) = &row.object else { continue };
        let process = at.svma.is_none().then_some(row.process);
        of_locks.entry((at.object, at.avma, process)).or_default().push(row);
    }
    let mut locks: Vec<LockRow> =
        of_locks.into_values().filter_map(|rows| lock(&rows, analysis)).collect();
    locks.sort_by_key(|row| (std::cmp::Reverse(row.wait_ns), row.process, row.api));
    locks
}

/// The rows are longest first.
fn lock(rows: &[&CauseRow], analysis: &Analysis) -> Option<LockRow> {
    let first = rows.first()?;
    let sum = |value: fn(&CauseRow) -> u64| {
        rows.iter().fold(0_u64, |sum, row| sum.saturating_add(value(row)))
    };
    let mut callers = BTreeSet::new();
    for row in rows {
        callers.extend(row.by_thread.iter().map(|span| (span.thread, row.api)));
    }
    let calls = callers.iter().map(|&(thread, api)| {
        let apis = &analysis.threads[thread as usize].apis;
        apis.iter().find(|row| Some(row.api) == api).map_or(0, |row| row.calls)
    });
    let threads: BTreeSet<u32> = callers.iter().map(|&(thread, _)| thread).collect();
    Some(LockRow {
        purpose: first.purpose,
        object: first.object.clone(),
        process: first.process,
        waits: sum(|row| row.waits),
        wait_ns: Ns(sum(|row| row.wait_ns.0)),
        max_ns: rows.iter().map(|row| row.max_ns).max()?,
        threads: threads.len(),
        acquisitions_at_most: calls.fold(0, u64::saturating_add),
        api: first.api,
        site: first.site,
        holders: longest(rows.iter().flat_map(|row| &row.holders)),
        wakers: longest(rows.iter().flat_map(|row| &row.wakers)),
    })
}

/// At most as many parties as a row has.
fn longest<'p>(parties: impl Iterator<Item = &'p Party>) -> Vec<Party> {
    const TOLD: usize = 4;
    let mut all: Vec<Party> = parties.cloned().collect();
    all.sort_by_key(|party| std::cmp::Reverse(party.wait_ns));
    all.truncate(TOLD);
    all
}
