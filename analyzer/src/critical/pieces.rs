//! Functions and locks that a run is replayed without.

use std::collections::HashSet;

use crate::analysis::Analysis;
use crate::causes::{CauseRow, LockKey, PathWait, Purpose, WaitObject, lock_key};
use crate::clock::Ns;
use crate::rows::ThreadRow;

/// What is taken out of a run: calls and locks.
#[derive(Clone, Debug, Default)]
pub struct Pieces {
    /// Whether the calls of each function are; by number in [`Analysis::apis`].
    pub apis: Vec<bool>,
    /// The locks whose waits are.
    pub locks: HashSet<LockKey>,
}

impl Pieces {
    /// Whether a wait is for one of the locks, or in one of the calls.
    #[must_use]
    pub fn has(&self, wait: &PathWait) -> bool {
        self.has_api(wait.api) || self.has_lock(&wait.object, wait.process, wait.purpose)
    }

    /// How much time of each thread of [`Analysis::threads`] is taken out: running and waiting.
    #[must_use]
    pub fn times(&self, analysis: &Analysis, causes: &[CauseRow]) -> Vec<Ns> {
        let of_calls = |thread: &ThreadRow| {
            let calls = thread.apis.iter().filter(|row| self.has_api(Some(row.api)));
            Ns(calls.fold(0, |sum, row| sum.saturating_add(row.self_ns.0)))
        };
        let mut times: Vec<Ns> = analysis.threads.iter().map(of_calls).collect();
        for row in causes {
            // (In calls that are taken out whole, it is there already.)
            if !self.has_api(row.api) && self.has_lock(&row.object, row.process, row.purpose) {
                for span in &row.by_thread {
                    let time = &mut times[span.thread as usize].0;
                    *time = time.saturating_add(span.ns.0);
                }
            }
        }
        times
    }

    fn has_api(&self, api: Option<u32>) -> bool {
        api.is_some_and(|api| self.apis.get(api as usize) == Some(&true))
    }

    /// (That something is a lock may only show in all waits for it.)
    fn has_lock(&self, object: &WaitObject, process: usize, purpose: Purpose) -> bool {
        (purpose.is_lock() || purpose == Purpose::Handover)
            && lock_key(object, process).is_some_and(|key| self.locks.contains(&key))
    }
}
