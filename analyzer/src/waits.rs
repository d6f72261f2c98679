//! What threads wait for, and where.

use serde::Serialize;

use crate::analysis::Analysis;
use crate::blocking::Cause;
use crate::clock::Ns;
use crate::groups::{Groups, ThreadSpan};

/// The waits of a group in an API. A barrier's wait is the group's: the library that it is in does
/// no more than keep the early ones until the last one comes.
#[derive(Clone, Debug, Serialize)]
pub struct WaitRow {
    /// The group, by number in [`Groups::rows`].
    pub group: u32,
    /// What for.
    pub cause: Cause,
    /// The API, by number in [`Analysis::apis`]; `None` for the threads' own code, whose waits only
    /// the scheduler knows.
    pub api: Option<u32>,
    /// Calls begun.
    pub calls: u64,
    /// Waits of all threads of the group.
    pub wait_ns: Ns,
    /// The same as a share of their lifetimes.
    pub of_lifetime: f64,
    /// Threads that called it.
    pub threads: usize,
    /// The thread that waited most.
    pub max: ThreadSpan,
}

/// All waits, longest first.
#[must_use]
pub fn waits(analysis: &Analysis, groups: &Groups) -> Vec<WaitRow> {
    let mut rows = Vec::new();
    for (number, group) in (0..).zip(&groups.rows) {
        for row in group.apis.iter().filter(|row| row.wait_ns.0 > 0) {
            let known = row.api.and_then(|api| analysis.apis[api as usize].waits_for);
            rows.push(WaitRow {
                group: number,
                cause: known.unwrap_or(Cause::Scheduler),
                api: row.api,
                calls: row.calls,
                wait_ns: row.wait_ns,
                of_lifetime: row.wait_ns.as_f64() / group.lifetime_ns.as_f64().max(1.0),
                threads: row.threads,
                max: ThreadSpan { thread: row.spread.max_thread, ns: row.spread.max_ns },
            });
        }
    }
    rows.sort_by_key(|row| (std::cmp::Reverse(row.wait_ns), row.group, row.api));
    rows
}
