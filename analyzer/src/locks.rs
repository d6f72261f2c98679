//! Locks that threads waited for, each over all places where it was waited for.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::address::CodeAddress;
use crate::analysis::Analysis;
use crate::causes::{CauseRow, Party, Purpose, WaitObject, lock_key};
use crate::clock::Ns;
use crate::held::{Held, HeldLocks};

/// A lock. Locks that were never waited for are not known.
#[derive(Clone, Debug, Serialize)]
pub struct LockRow {
    /// The kind of lock.
    pub purpose: Purpose,
    /// Identifies the lock.
    pub object: WaitObject,
    /// A process in which the addresses are valid.
    #[serde(skip)]
    pub process: usize,
    /// The number of waits. A thread may wait several times for one acquisition.
    pub waits: u64,
    /// The acquisitions that had to wait, each counted once: exact, but for those that got the lock after spinning
    /// alone. `None` if these are not known: of locks that are taken by code that is in no library call, or by several
    /// system calls of its own (as those of Rust); and where a companion of an older version watched.
    pub contended: Option<u64>,
    /// Their total time.
    pub wait_ns: Ns,
    /// The longest.
    pub max_ns: Ns,
    /// The number of threads that waited.
    pub threads: usize,
    /// An upper bound of the acquisitions by the threads that waited: their calls of the functions in which they
    /// waited, for any lock. Acquisitions without waits are not known by lock.
    pub acquisitions_at_most: u64,
    /// How long it was held, where both ends of that were seen: while others waited for it.
    pub held: Option<Held>,
    /// Where threads waited longest: the API, by number in [`Analysis::apis`].
    pub api: Option<u32>,
    /// The return address of that call.
    pub site: Option<CodeAddress>,
    /// Who held it meanwhile, longest first; empty if the lock's memory doesn't show its owner.
    pub holders: Vec<Party>,
    /// Who released it when the waits ended, longest first.
    pub wakers: Vec<Party>,
}

/// Returns the locks, longest total wait first.
#[must_use]
pub fn locks(causes: &[CauseRow], analysis: &Analysis, held: &HeldLocks) -> Vec<LockRow> {
    let mut of_locks: BTreeMap<_, Vec<&CauseRow>> = BTreeMap::new();
    for row in causes.iter().filter(|row| row.purpose.is_lock()) {
        let Some(key) = lock_key(&row.object, row.process) else { continue };
        of_locks.entry(key).or_default().push(row);
    }
    let mut locks: Vec<LockRow> = of_locks
        .into_iter()
        .filter_map(|(key, rows)| lock(&rows, analysis, held.of_lock(&key)))
        .collect();
    locks.sort_by_key(|row| (std::cmp::Reverse(row.wait_ns), row.process, row.api));
    locks
}

/// The rows are sorted, longest first.
fn lock(rows: &[&CauseRow], analysis: &Analysis, held: Option<Held>) -> Option<LockRow> {
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
        contended: contended(rows, analysis),
        wait_ns: Ns(sum(|row| row.wait_ns.0)),
        max_ns: rows.iter().map(|row| row.max_ns).max()?,
        threads: threads.len(),
        acquisitions_at_most: calls.fold(0, u64::saturating_add),
        held,
        api: first.api,
        site: first.site,
        holders: longest(rows.iter().flat_map(|row| &row.holders)),
        wakers: longest(rows.iter().flat_map(|row| &row.wakers)),
    })
}

/// Returns the acquisitions that had to wait, if all of them were by functions of which one call is one acquisition.
fn contended(rows: &[&CauseRow], analysis: &Analysis) -> Option<u64> {
    let takes_once = |row: &&CauseRow| {
        let symbol = row.api.map_or("", |api| &*analysis.apis[api as usize].symbol);
        let symbol = symbol.trim_start_matches('_');
        symbol.starts_with("pthread_") || symbol.starts_with("sem_")
    };
    let calls = rows.iter().fold(0, |sum: u64, row| sum.saturating_add(row.calls));
    (calls > 0 && rows.iter().all(takes_once)).then_some(calls)
}

/// Returns the longest parties, as many as a row has at most.
fn longest<'p>(parties: impl Iterator<Item = &'p Party>) -> Vec<Party> {
    const MOST_PARTIES: usize = 4;
    let mut all: Vec<Party> = parties.cloned().collect();
    all.sort_by_key(|party| std::cmp::Reverse(party.wait_ns));
    all.truncate(MOST_PARTIES);
    all
}
