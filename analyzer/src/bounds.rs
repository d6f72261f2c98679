//! What the run would gain at most without the waits and threads that findings are about.
//!
//! A finding says how much sooner the thread would be done that gains most. The run may gain less: another thread may end later, or
//! wait for something else. So the run is replayed (see [`what_if`](mod@crate::critical)) without the waits for each of the locks that are
//! waited for longest, as `chase-report path --without` does it; and with each of the threads, and of the groups of threads, that others
//! wait for longest taking no time for what they do.

use std::collections::{BTreeMap, HashMap, HashSet};

use crate::analysis::Analysis;
use crate::causes::{CauseRow, LockKey, PartyKind, lock_key};
use crate::clock::Ns;
use crate::critical::{Pieces, Without, replay_without};
use crate::groups::Groups;
use crate::long_waits::OffCpuTimes;

/// The minimum saving of a finding, as a share of the wall time.
pub(crate) const MATERIAL_SHARE: f64 = 0.05;
/// The minimum saving of a finding, in ns.
pub(crate) const MATERIAL_NS: f64 = 1e6;
/// So many locks, threads, and groups are looked at.
const MOST: usize = 8;

/// By lock, thread and group: how much sooner the run would be done, at most. What is missing is not known.
#[derive(Clone, Debug, Default)]
pub(crate) struct Bounds {
    pub(crate) locks: HashMap<LockKey, Ns>,
    pub(crate) threads: HashMap<u32, Ns>,
    pub(crate) groups: HashMap<u32, Ns>,
}

impl Bounds {
    /// Replays the run; `times` are all its long waits.
    pub(crate) fn new(
        analysis: &Analysis,
        groups: &Groups,
        causes: &[CauseRow],
        times: &[OffCpuTimes],
    ) -> Self {
        let waits: Vec<_> = times.iter().map(|own| &*own.waits).collect();
        let gain = |without: &Without<'_>| {
            replay_without(analysis, groups, &waits, without).map(|found| found.saves_at_most_ns)
        };
        let of_lock = |lock: &LockKey| {
            let pieces = Pieces { apis: Vec::new(), locks: HashSet::from([*lock]) };
            let spent = pieces.times(analysis, causes);
            gain(&Without {
                wait: &|wait| pieces.has(wait),
                time: &|thread| spent[thread as usize],
                thread: &|_| false,
            })
        };
        let of_threads = |is_one: &dyn Fn(u32) -> bool| {
            gain(&Without { wait: &|_| false, time: &|_| Ns(0), thread: is_one })
        };
        let (mut locks, mut threads, mut of_groups): (BTreeMap<LockKey, u64>, _, _) =
            Default::default();
        let (by_thread, by_group): (&mut BTreeMap<u32, u64>, &mut BTreeMap<u32, u64>) =
            (&mut threads, &mut of_groups);
        for row in causes {
            if let Some(key) = lock_key(&row.object, row.process).filter(|_| row.purpose.is_lock())
            {
                add(locks.entry(key).or_default(), row.wait_ns);
            }
            for waker in row.wakers.iter().filter(|waker| waker.kind == PartyKind::Thread) {
                if let Some(group) = waker.group {
                    add(by_group.entry(group).or_default(), waker.wait_ns);
                }
                for span in &waker.by_thread {
                    add(by_thread.entry(span.thread).or_default(), span.ns);
                }
            }
        }
        let least = (MATERIAL_SHARE * analysis.wall_ns.as_f64()).max(MATERIAL_NS) as u64;
        Self {
            locks: each(longest(locks, least), of_lock),
            threads: each(longest(threads, least), |&one| of_threads(&|thread| thread == one)),
            groups: each(longest(of_groups, least), |&one| {
                of_threads(&|thread| groups.of_thread.get(thread as usize) == Some(&one))
            }),
        }
    }
}

fn add(sum: &mut u64, ns: Ns) {
    *sum = sum.saturating_add(ns.0);
}

/// Returns those that are waited for longest.
fn longest<K: Ord>(sums: BTreeMap<K, u64>, least: u64) -> Vec<K> {
    let mut all: Vec<(K, u64)> = sums.into_iter().filter(|&(_, ns)| ns >= least).collect();
    all.sort_by(|a, b| (b.1, &a.0).cmp(&(a.1, &b.0)));
    all.truncate(MOST);
    all.into_iter().map(|(key, _)| key).collect()
}

fn each<K: Eq + std::hash::Hash>(keys: Vec<K>, of: impl Fn(&K) -> Option<Ns>) -> HashMap<K, Ns> {
    keys.into_iter().filter_map(|key| of(&key).map(|ns| (key, ns))).collect()
}
