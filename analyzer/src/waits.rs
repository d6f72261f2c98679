//! What threads wait for, and where.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::analysis::Analysis;
use crate::blocking::Cause;
use crate::clock::Ns;
use crate::groups::{Groups, ThreadSpan};

/// The waits of a group in an API. Waits at a barrier are attributed to the group: the library only keeps the early
/// threads until the last one comes.
#[derive(Clone, Debug, Serialize)]
pub struct WaitRow {
    /// The group, by number in [`Groups::rows`].
    pub group: u32,
    /// What is waited for, or in an API mostly.
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

/// What threads of a group wait for in an API, or in their own code.
#[derive(Default)]
struct InPlace {
    /// Each thread's time.
    by_thread: Vec<ThreadSpan>,
}

impl InPlace {
    fn sum(&self) -> f64 {
        self.by_thread.iter().map(|span| span.ns.as_f64()).sum()
    }

    /// The first of those that waited longest.
    fn longest(&self) -> Option<ThreadSpan> {
        self.by_thread.iter().rev().max_by_key(|span| span.ns).copied()
    }
}

/// By group, place and cause, since threads' own code waits for different things.
type Places = BTreeMap<(u32, Option<u32>), BTreeMap<Cause, InPlace>>;

fn places(analysis: &Analysis, groups: &Groups) -> Places {
    let mut places = Places::new();
    for ((number, thread), &group) in (0..).zip(&analysis.threads).zip(&groups.of_thread) {
        let of_apis = thread.apis.iter().map(|api| (Some(api.api), api.wait_ns));
        let own = thread.outside_wait_ns().map(|ns| (None, ns));
        for (api, ns) in of_apis.chain(own).filter(|(_, ns)| ns.0 > 0) {
            let causes = places.entry((group, api)).or_default();
            for (cause, part) in analysis.parts_of_waits(api, number) {
                let span = ThreadSpan { thread: number, ns: Ns::from_f64(ns.as_f64() * part) };
                causes.entry(cause).or_default().by_thread.push(span);
            }
        }
    }
    places
}

/// Returns all waits, longest first.
#[must_use]
pub fn waits(analysis: &Analysis, groups: &Groups) -> Vec<WaitRow> {
    let mut rows = Vec::new();
    let mut places = places(analysis, groups);
    for (number, group) in (0..).zip(&groups.rows) {
        for row in group.apis.iter().filter(|row| row.wait_ns.0 > 0) {
            let mut causes = places.remove(&(number, row.api)).unwrap_or_default();
            if causes.is_empty() {
                // The group's waits were measured otherwise.
                causes
                    .insert(analysis.waits_for(row.api, row.spread.max_thread), InPlace::default());
            }
            let all: f64 = causes.values().map(InPlace::sum).sum();
            let is_one = causes.len() == 1;
            for (cause, waits) in causes {
                let part = if is_one || all <= 0.0 { 1.0 } else { waits.sum() / all };
                let wait_ns = Ns::from_f64(row.wait_ns.as_f64() * part);
                rows.push(WaitRow {
                    group: number,
                    cause,
                    api: row.api,
                    calls: row.calls,
                    wait_ns,
                    of_lifetime: wait_ns.as_f64() / group.lifetime_ns.as_f64().max(1.0),
                    threads: if is_one { row.threads } else { waits.by_thread.len() },
                    max: waits.longest().unwrap_or(ThreadSpan {
                        thread: row.spread.max_thread,
                        ns: row.spread.max_ns.min(row.wait_ns),
                    }),
                });
            }
        }
    }
    rows.retain(|row| row.wait_ns.0 > 0);
    rows.sort_by_key(|row| (std::cmp::Reverse(row.wait_ns), row.group, row.api, row.cause));
    rows
}
