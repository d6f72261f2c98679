//! What blocks the threads that matter, and which threads wait for a processor.
//!
//! Most threads of large programs have nothing to do: workers of a pool, helpers of a runtime, a main thread that
//! joins the others. Together they wait longer than anything else takes, which means nothing. So a thread is *idle*
//! if it spent at least [`IDLE`] of its lifetime, without what it waited for a processor, waiting for work: on a condition or a semaphore, for readiness of
//! descriptors, for a connection, for time to pass, for the end of a thread or process, or, if the scheduler was
//! observed, in a system call of its own code or by `syscall`. Waits for locks and barriers, and for input and output
//! under way, don't make a thread idle, however long they are: there is work that can't go on.
//!
//! Where the threads with work lived together for less than [`ENOUGH`] of the run, most of it is that nobody has anything to do
//! but wait: then all waits count, and no thread is idle.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, HashSet};

use serde::Serialize;

use crate::analysis::Analysis;
use crate::blocking::{Cause, is_for_work};
use crate::clock::Ns;
use crate::groups::{GroupRow, Groups, ThreadSpan};
use crate::rows::ThreadRow;

/// The minimum part of its lifetime, without what it waits for a processor, that an idle thread waits for work.
const IDLE: f64 = 0.95;
/// The minimum part of the wall time that threads with work live together, for what idle ones wait for to mean nothing.
const ENOUGH: f64 = 0.5;
/// Waiting for a processor matters if it is at least this part of the time that threads wanted one.
const SCARCE: f64 = 0.02;

/// Where threads are off the CPU. Waits are measured by the scheduler or estimated by name, see
/// [`Analysis::wait_source`].
#[derive(Clone, Debug, Default)]
pub struct Blocked {
    /// Waits of the threads that are not idle, longest first.
    pub rows: Vec<BlockedRow>,
    /// Their sum.
    pub wait_ns: Ns,
    /// The number of threads that they are of.
    pub threads: usize,
    /// Idle threads, by where they wait most; most threads first.
    pub idle: Vec<IdleRow>,
    /// Waiting for a processor, if that matters.
    pub runnable: Option<Runnable>,
}

/// Waits in one function.
#[derive(Clone, Debug, Serialize)]
pub struct BlockedRow {
    /// What is waited for.
    pub cause: Cause,
    /// The API, by number in [`Analysis::apis`]; `None` for the threads' own code.
    pub api: Option<u32>,
    /// Waits of all threads that are not idle.
    pub wait_ns: Ns,
    /// The number of these threads.
    pub threads: usize,
    /// The thread that waited most.
    pub max: ThreadSpan,
}

/// Idle threads that wait in one function.
#[derive(Clone, Debug, Serialize)]
pub struct IdleRow {
    /// Where they wait most: the API, by number in [`Analysis::apis`]; `None` for their own code.
    pub api: Option<u32>,
    /// The number of threads.
    pub threads: usize,
    /// All of their waits.
    pub wait_ns: Ns,
    /// The threads, by number in [`Analysis::threads`].
    pub members: Vec<u32>,
}

/// Threads that were ready to run while others ran.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Runnable {
    /// How long, in total.
    pub runnable_ns: Ns,
    /// The part of the time that all threads wanted a processor: on it, or waiting for it.
    pub of_wanted: f64,
    /// The number of threads that waited for at least this part of the time that they wanted one.
    pub threads: usize,
}

impl Blocked {
    /// Returns the number of idle threads.
    #[must_use]
    pub fn idle_threads(&self) -> usize {
        self.idle.iter().map(|row| row.threads).sum()
    }

    /// Whether all threads of each group are idle, by number in [`Groups::rows`].
    #[must_use]
    pub fn idle_groups(&self, groups: &Groups) -> Vec<bool> {
        let idle: HashSet<u32> = self.idle.iter().flat_map(|row| &row.members).copied().collect();
        let all_idle = |group: &GroupRow| group.members.iter().all(|thread| idle.contains(thread));
        groups.rows.iter().map(all_idle).collect()
    }
}

/// Returns the waits of a thread by API, and in its own code.
fn waits_of(thread: &ThreadRow) -> impl Iterator<Item = (Option<u32>, Ns)> {
    let of_apis = thread.apis.iter().map(|api| (Some(api.api), api.wait_ns));
    let own = thread.outside_wait_ns().map(|ns| (None, ns));
    of_apis.chain(own).filter(|(_, ns)| ns.0 > 0)
}

/// Returns where the thread waited most, if it was idle.
fn idle_in(analysis: &Analysis, thread: &ThreadRow) -> Option<Option<u32>> {
    let is_measured = thread.application_wait_ns.is_some();
    // (Where calls were only counted, it may be for a lock.)
    let is_known = is_measured && !analysis.processes[thread.process].only_counts;
    let for_work = |&(api, _): &(Option<u32>, Ns)| match api {
        Some(api) => is_for_work(&analysis.apis[api as usize].symbol, is_measured),
        None => is_known,
    };
    let waited: f64 = waits_of(thread).filter(for_work).map(|(_, ns)| ns.as_f64()).sum();
    let longest = waits_of(thread).filter(for_work).max_by_key(|&(api, ns)| (ns, Reverse(api)));
    // How long others kept it from running after it was woken says nothing about its work. (Where it was pushed aside, it had some.)
    let own = thread.lifetime_ns.as_f64() - thread.woken_ns.as_f64();
    longest.filter(|_| waited >= IDLE * own).map(|(api, _)| api)
}

/// Finds out what threads are blocked by.
#[must_use]
pub fn blocked(analysis: &Analysis) -> Blocked {
    let mut blocked = Blocked { runnable: runnable(analysis), ..Blocked::default() };
    // (Threads' own code waits for different things.)
    let mut rows: HashMap<(Option<u32>, Cause), BlockedRow> = HashMap::new();
    let mut idle: HashMap<Option<u32>, IdleRow> = HashMap::new();
    let idle_in: Vec<_> = analysis.threads.iter().map(|thread| idle_in(analysis, thread)).collect();
    let with_work = analysis.threads.iter().zip(&idle_in).filter(|(_, idle)| idle.is_none());
    let worked: f64 = with_work.map(|(thread, _)| thread.lifetime_ns.as_f64()).sum();
    let is_worked = worked >= ENOUGH * analysis.wall_ns.as_f64();
    // A thread that went on as another program has a row for each.
    let (mut blocked_ones, mut in_apis) = (HashSet::new(), HashSet::new());
    for ((number, thread), idle_in) in (0..).zip(&analysis.threads).zip(idle_in) {
        let identity = analysis.identity(thread);
        let waited = waits_of(thread).fold(0_u64, |sum, (_, ns)| sum.saturating_add(ns.0));
        if let Some(api) = idle_in.filter(|_| is_worked) {
            let none = IdleRow { api, threads: 0, wait_ns: Ns(0), members: Vec::new() };
            let row = idle.entry(api).or_insert(none);
            row.threads += 1;
            row.wait_ns.0 = row.wait_ns.0.saturating_add(waited);
            row.members.push(number);
            continue;
        }
        blocked.threads += usize::from(waited > 0 && blocked_ones.insert(identity));
        blocked.wait_ns.0 = blocked.wait_ns.0.saturating_add(waited);
        let causes = |(api, ns): (Option<u32>, Ns)| {
            let parts = analysis.parts_of_waits(api, number).into_iter();
            parts.map(move |(cause, part)| (api, cause, Ns::from_f64(ns.as_f64() * part)))
        };
        for (api, cause, ns) in waits_of(thread).flat_map(causes) {
            let max = ThreadSpan { thread: number, ns };
            let row = rows.entry((api, cause)).or_insert(BlockedRow {
                cause,
                api,
                wait_ns: Ns(0),
                threads: 0,
                max,
            });
            row.wait_ns.0 = row.wait_ns.0.saturating_add(ns.0);
            row.threads += usize::from(in_apis.insert((api, cause, identity)));
            if ns > row.max.ns {
                row.max = max;
            }
        }
    }
    blocked.rows = rows.into_values().collect();
    blocked.rows.sort_by_key(|row| (Reverse(row.wait_ns), row.api, row.cause));
    blocked.idle = idle.into_values().collect();
    blocked.idle.sort_by_key(|row| (Reverse(row.threads), Reverse(row.wait_ns), row.api));
    blocked
}

/// Returns `None` if this was not measured, or is negligible.
fn runnable(analysis: &Analysis) -> Option<Runnable> {
    let scarce = |thread: &ThreadRow| {
        let runnable = thread.off_cpu.runnable_ns?.as_f64();
        let wanted = thread.on_cpu_ns?.as_f64() + runnable;
        Some((runnable, wanted))
    };
    let mut of_threads: BTreeMap<_, (f64, f64)> = BTreeMap::new();
    for thread in &analysis.threads {
        let Some((runnable, wanted)) = scarce(thread) else { continue };
        let sums = of_threads.entry(analysis.identity(thread)).or_default();
        *sums = (sums.0 + runnable, sums.1 + wanted);
    }
    let (mut runnable, mut wanted, mut threads) = (0.0, 0.0, 0);
    for (of_one, wanted_by_one) in of_threads.into_values() {
        runnable += of_one;
        wanted += wanted_by_one;
        threads += usize::from(of_one > 0.0 && of_one >= SCARCE * wanted_by_one);
    }
    (runnable > 0.0 && runnable >= SCARCE * wanted).then(|| Runnable {
        runnable_ns: Ns::from_f64(runnable),
        of_wanted: runnable / wanted,
        threads,
    })
}
