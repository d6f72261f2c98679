//! Threads that were started together, and the one of them that ends long after the others.
//!
//! The threads that one thread starts are a *set*: all of them, whatever they do, and those of each group among them. The last of a set to
//! end is *late* if at least two others were started about when it was, and it lives on for a quarter of its life after all others of
//! the set. What it does then is what whoever joins them waits for. Processes that one process forks are a set, too, as far as none of
//! them became another program, and all ends were seen.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

use serde::Serialize;

use crate::analysis::Analysis;
use crate::causes::{NamingPlaces, PathWait, Run};
use crate::clock::Ns;
use crate::event_loops::{RanLate, WaitInTurns};
use crate::groups::Groups;
use crate::image::{Ending, Image};
use crate::long_waits::OffCpuTimes;
use crate::rows::{ThreadOrigin, ThreadRow};
use crate::spans::common_ns;

/// The others end earlier than the last one by at least this part of its life.
pub(crate) const LATE: f64 = 0.25;
/// Threads that begin within this part of its life share work.
pub(crate) const TOGETHER: f64 = 0.2;
/// The minimum number of others that were started with it.
const OTHERS: usize = 2;
/// Shorter times alone are not worth a look.
const NOTICED_NS: u64 = 1_000_000;

/// The late one of threads that were started together.
#[derive(Clone, Debug, Serialize)]
pub struct LateThread {
    /// The thread, by number in [`Analysis::threads`].
    pub thread: u32,
    /// Those that were started with it.
    pub others: Vec<u32>,
    /// Whether all of the set run the same function.
    pub is_group: bool,
    /// Whether they are processes; then, these are their first threads.
    pub is_process: bool,
    /// How long it lived on after all others.
    pub alone_ns: Ns,
    /// What it waited for then, longest first.
    #[serde(skip)]
    pub waits: Vec<WaitInTurns>,
    /// The process, by number in [`Analysis::processes`]. The following addresses are valid in it.
    #[serde(skip)]
    pub process: usize,
    /// What it ran in all its life, by address, most samples first.
    #[serde(skip)]
    pub ran: Vec<RanLate>,
}

/// Finds late threads. `times` are the long waits of `analysis`.
pub(crate) fn late_threads(
    images: &[Image],
    analysis: &Analysis,
    groups: &Groups,
    naming: &dyn NamingPlaces,
    times: &[OffCpuTimes],
) -> Vec<LateThread> {
    let mut sets: BTreeMap<(usize, u32, Option<u32>), Vec<u32>> = BTreeMap::new();
    for ((number, row), &group) in (0..).zip(&analysis.threads).zip(&groups.of_thread) {
        let Some(creator) = row.creator else { continue };
        for of_group in [None, Some(group)] {
            sets.entry((row.process, creator, of_group)).or_default().push(number);
        }
    }
    let late = |((_, _, group), set): (_, Vec<u32>)| late_of(analysis, group, &set);
    let mut found: Vec<LateThread> = sets.into_iter().filter_map(late).collect();
    found.extend(late_processes(analysis, groups));
    if !found.is_empty() {
        let run = Run::new(images, analysis, groups, naming);
        for late in &mut found {
            late.waits = waits_alone(analysis, times, late);
            late.ran = ran(&run, images, late);
        }
    }
    found
}

/// Finds late ones of processes that were forked.
fn late_processes(analysis: &Analysis, groups: &Groups) -> Vec<LateThread> {
    let mut sets: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for ((number, row), &group) in (0..).zip(&analysis.threads).zip(&groups.of_thread) {
        if forked_by(analysis, row).is_some() {
            sets.entry(group).or_default().push(number);
        }
    }
    let is_known = |&thread: &u32| {
        let row = &analysis.threads[thread as usize];
        !row.end_is_estimate && analysis.processes[row.process].ending != Ending::Exec
    };
    let known = sets.into_iter().filter(|(_, set)| set.iter().all(is_known));
    let late = known.filter_map(|(group, set)| late_of(analysis, Some(group), &set));
    late.map(|late| LateThread { is_process: true, ..late }).collect()
}

/// Returns the process that forked that of a first thread, by number in [`Analysis::processes`].
pub(crate) fn forked_by(analysis: &Analysis, thread: &ThreadRow) -> Option<usize> {
    let process = analysis.processes.get(thread.process)?;
    let is_forked = thread.origin == ThreadOrigin::Main && process.forked;
    process.parent.filter(|_| is_forked)
}

fn late_of(analysis: &Analysis, group: Option<u32>, set: &[u32]) -> Option<LateThread> {
    let row = |&thread: &u32| &analysis.threads[thread as usize];
    let last = *set.iter().max_by_key(|thread| row(thread).end_ns)?;
    let late = row(&last);
    let is_other = |other: &&u32| **other != last && is_together(late, row(other));
    let others: Vec<u32> = set.iter().filter(is_other).copied().collect();
    let next_ns =
        set.iter().filter(|&&other| other != last).map(|other| row(other).end_ns).max()?;
    let alone_ns = late.end_ns.0.saturating_sub(next_ns.0);
    let is_late = others.len() >= OTHERS
        && alone_ns >= NOTICED_NS
        && alone_ns as f64 >= LATE * late.lifetime_ns.as_f64();
    is_late.then(|| LateThread {
        thread: last,
        others,
        is_group: group.is_some(),
        is_process: false,
        alone_ns: Ns(alone_ns),
        waits: Vec::new(),
        process: late.process,
        ran: Vec::new(),
    })
}

/// Whether they were started at about the same time, for the life of the last one.
fn is_together(last: &ThreadRow, other: &ThreadRow) -> bool {
    let apart_ns = other.start_ns.0.abs_diff(last.start_ns.0);
    apart_ns as f64 <= TOGETHER * last.lifetime_ns.as_f64()
}

fn waits_alone(analysis: &Analysis, times: &[OffCpuTimes], late: &LateThread) -> Vec<WaitInTurns> {
    let end_ns = analysis.threads[late.thread as usize].end_ns.0;
    let alone = (end_ns.saturating_sub(late.alone_ns.0), end_ns);
    let mut sums: HashMap<&PathWait, u64> = HashMap::new();
    let own = times.get(late.thread as usize).into_iter().flat_map(|own| &own.waits);
    for wait in own.filter(|wait| !wait.is_own) {
        let ns = common_ns(&[(wait.begin_ns, wait.end_ns)], alone);
        if ns > 0 {
            *sums.entry(&wait.wait).or_default() += ns;
        }
    }
    let row = |(wait, ns): (&PathWait, u64)| WaitInTurns { wait: wait.clone(), ns: Ns(ns) };
    let mut rows: Vec<WaitInTurns> = sums.into_iter().map(row).collect();
    rows.sort_by_key(|row| (Reverse(row.ns), row.wait.api, row.wait.site.map(|site| site.avma)));
    rows
}

fn ran(run: &Run<'_>, images: &[Image], late: &LateThread) -> Vec<RanLate> {
    let file = images.get(late.process).and_then(|image| image.syscalls.as_ref());
    let mut sums: BTreeMap<u64, u64> = BTreeMap::new();
    for row in file.iter().flat_map(|file| file.samples()) {
        if run.place(late.process, row.context_ref, row.tid).0 == Some(late.thread) {
            *sums.entry(row.address).or_default() += u64::from(row.user) + u64::from(row.kernel);
        }
    }
    let place =
        |(avma, samples)| Some(RanLate { address: run.address(late.process, avma)?, samples });
    let mut ran: Vec<RanLate> = sums.into_iter().filter_map(place).collect();
    ran.sort_by_key(|row| (Reverse(row.samples), row.address.avma));
    ran
}
