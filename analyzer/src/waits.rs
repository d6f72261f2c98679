//! What threads wait for, and where.

use std::collections::{BTreeMap, HashMap};

use serde::Serialize;

use crate::analysis::Analysis;
use crate::blocking::Cause;
use crate::clock::Ns;
use crate::groups::{GroupRow, Groups, ThreadSpan};

/// The waits of a group in an API. Waits at a barrier are attributed to the group: the library only keeps the early
/// threads until the last one comes.
#[derive(Clone, Debug, Serialize)]
pub struct WaitRow {
    /// The group, by number in [`Groups::rows`].
    pub group: u32,
    /// What is waited for, or mostly.
    pub cause: Cause,
    /// The API, by number in [`Analysis::apis`]; `None` for the threads' own code, whose waits are only known from
    /// the scheduler.
    pub api: Option<u32>,
    /// Calls begun.
    pub calls: u64,
    /// Waits of all threads of the group.
    pub wait_ns: Ns,
    /// The same as a share of their lifetimes.
    pub of_lifetime: f64,
    /// The number of threads that called it.
    pub threads: usize,
    /// The thread that waited most.
    pub max: ThreadSpan,
}

/// Returns which thread of each group waited longest in each API, or in its own code.
fn longest(analysis: &Analysis, groups: &Groups) -> HashMap<(u32, Option<u32>), ThreadSpan> {
    let mut longest: HashMap<(u32, Option<u32>), ThreadSpan> = HashMap::new();
    for ((number, thread), &group) in (0..).zip(&analysis.threads).zip(&groups.of_thread) {
        let of_apis = thread.apis.iter().map(|api| (Some(api.api), api.wait_ns));
        let own = thread.application_wait_ns.map(|ns| (None, ns));
        for (api, ns) in of_apis.chain(own).filter(|(_, ns)| ns.0 > 0) {
            let span = ThreadSpan { thread: number, ns };
            let known = longest.entry((group, api)).or_insert(span);
            if ns > known.ns {
                *known = span;
            }
        }
    }
    longest
}

/// Returns what the waits of a group's threads in an API, or in their own code, are for, or mostly are.
fn mostly_for(analysis: &Analysis, group: &GroupRow, api: Option<u32>) -> Cause {
    if api.is_some() {
        return analysis.waits_for(api, 0);
    }
    let mut times: BTreeMap<Cause, u64> = BTreeMap::new();
    for &thread in &group.members {
        let ns = analysis.threads[thread as usize].application_wait_ns.unwrap_or_default();
        let time = times.entry(analysis.waits_for(None, thread)).or_default();
        *time = time.saturating_add(ns.0);
    }
    times.into_iter().max_by_key(|&(_, ns)| ns).map_or(Cause::Other, |(cause, _)| cause)
}

/// Returns all waits, longest first.
#[must_use]
pub fn waits(analysis: &Analysis, groups: &Groups) -> Vec<WaitRow> {
    let mut rows = Vec::new();
    let longest = longest(analysis, groups);
    for (number, group) in (0..).zip(&groups.rows) {
        for row in group.apis.iter().filter(|row| row.wait_ns.0 > 0) {
            rows.push(WaitRow {
                group: number,
                cause: mostly_for(analysis, group, row.api),
                api: row.api,
                calls: row.calls,
                wait_ns: row.wait_ns,
                of_lifetime: row.wait_ns.as_f64() / group.lifetime_ns.as_f64().max(1.0),
                threads: row.threads,
                // (If there is none, the group's waits were measured otherwise.)
                max: longest.get(&(number, row.api)).copied().unwrap_or(ThreadSpan {
                    thread: row.spread.max_thread,
                    ns: row.spread.max_ns.min(row.wait_ns),
                }),
            });
        }
    }
    rows.sort_by_key(|row| (std::cmp::Reverse(row.wait_ns), row.group, row.api));
    rows
}
