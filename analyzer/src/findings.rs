//! What is worth a sentence: the few things that would save most, each with its evidence.
//!
//! # When there is something to say
//!
//! A finding says how much sooner the thread that gains most from it would be done
//! ([`Finding::saves_ns`]); that bounds what the program can gain. It is material from
//! [`MATERIAL_SHARE`] of the wall time of its group's processes and [`MATERIAL_NS`] on: less is
//! within what two runs differ by. The kinds have thresholds of their own, named and argued in
//! their modules. Where nothing passes, nothing is said.
//!
//! One cause is claimed once. A slow call counts for the innermost API that explains half of it; a
//! thread that is slow because of a slow first call, or because of rare slow calls, is no slow
//! thread; nor is one that others wait for at a barrier, which is a straggler.

mod calls;
mod threads;
mod waits;

use serde::Serialize;

use crate::analysis::Analysis;
use crate::clock::Ns;
use crate::groups::{GroupRow, Groups};
use crate::tail::Tails;

/// Findings at most.
const MOST: usize = 7;
/// Least saving as a share of the wall time.
pub(crate) const MATERIAL_SHARE: f64 = 0.05;
/// Least saving.
pub(crate) const MATERIAL_NS: f64 = 1e6;

/// Something that costs time, and what it costs.
#[derive(Clone, Debug, Serialize)]
pub struct Finding {
    /// The group, by number in [`Groups::rows`].
    pub group: u32,
    /// The threads concerned, the one that gains most first, by number in [`Analysis::threads`].
    pub threads: Vec<u32>,
    /// The API, by number in [`Analysis::apis`]; `None` for the threads' own code, or where no
    /// single one is concerned.
    pub api: Option<u32>,
    /// How much sooner the thread that gains most would be done; 0 where nothing is lost.
    pub saves_ns: Ns,
    /// The same as a share of the wall time of the run.
    pub share: f64,
    /// What it is, and the figures that show it.
    #[serde(flatten)]
    pub kind: FindingKind,
}

/// What was found. Times are of the thread that gains most unless said otherwise.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "kind", content = "evidence")]
pub enum FindingKind {
    /// Threads that took longer than others of their group.
    SlowThreads {
        /// Useful time in the API.
        useful_ns: Ns,
        /// Median of the group.
        median_ns: Ns,
        /// Robust standard deviations above it.
        score: f64,
        /// Threads that it was compared with.
        of_threads: usize,
        /// Excess of all the threads concerned.
        excess_ns: Ns,
        /// Whether rates were compared, scaled to this thread's lifetime.
        as_rates: bool,
    },
    /// The first call of an API took longer than later ones.
    SlowFirstCall {
        /// The first call.
        first_ns: Ns,
        /// Median of the calls of that thread.
        median_ns: Ns,
        /// Calls of that thread.
        calls: u64,
        /// Excess of all the threads concerned.
        excess_ns: Ns,
        /// The innermost library call inside that took most of it, if it was made too seldom to have a usual time.
        inside: Option<Inside>,
    },
    /// A few calls took most of the time.
    RareSlowCalls {
        /// Calls of the API by the threads of the group.
        calls: u64,
        /// The slow ones.
        slow_calls: u64,
        /// Their time.
        slow_ns: Ns,
        /// Their excess over the median, in all threads.
        excess_ns: Ns,
        /// Median of all calls.
        median_ns: Ns,
        /// The longest.
        max_ns: Ns,
    },
    /// Threads wait for a lock that others of them hold.
    SerialisingLock {
        /// The longest wait of one thread.
        wait_ns: Ns,
        /// Waits of all threads of the group.
        all_wait_ns: Ns,
        /// The same as a share of their lifetimes.
        of_lifetime: f64,
        /// The library call that the lock was taken in, if it was one.
        inside: Option<u32>,
    },
    /// Others wait at a barrier for one thread.
    BarrierStraggler {
        /// Useful time in the API.
        useful_ns: Ns,
        /// Median of the group.
        median_ns: Ns,
        /// What the straggler waited at barriers.
        own_wait_ns: Ns,
        /// What the median thread waited there.
        median_wait_ns: Ns,
        /// Waits of all.
        all_wait_ns: Ns,
    },
    /// Consumers wait for a producer that is busy.
    StarvedConsumers {
        /// The longest wait of one thread.
        wait_ns: Ns,
        /// Waits of all consumers.
        all_wait_ns: Ns,
        /// The same as a share of their lifetimes.
        of_lifetime: f64,
        /// The producer, by number in [`Analysis::threads`].
        producer: u32,
        /// Useful time of the producer as a share of its lifetime.
        producer_busy: f64,
        /// How many times it signalled.
        signals: u64,
    },
    /// Most of the time goes to very many short calls.
    ManyTinyCalls {
        /// Calls of all threads of the group.
        calls: u64,
        /// Mean self time.
        mean_ns: f64,
        /// Self time of all.
        all_ns: Ns,
        /// The same as a share of the group's lifetimes.
        of_lifetime: f64,
    },
    /// Threads with one start routine that behave differently.
    SubGroups {
        /// The behaviours.
        parts: Vec<SubGroupSummary>,
        /// Mean silhouette of the clustering.
        silhouette: f64,
    },
}

/// What a slow call spent its time in.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Inside {
    /// The API, by number in [`Analysis::apis`].
    pub api: u32,
    /// How often that thread called it there.
    pub calls: u64,
    /// How long those calls took together.
    pub total_ns: Ns,
}

/// One behaviour of a group.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SubGroupSummary {
    /// How many threads.
    pub threads: usize,
    /// Where they spend most of their useful time; `None` for their own code.
    pub api: Option<u32>,
    /// The share of it that they spend there.
    pub share: f64,
}

/// What findings are made from.
struct Evidence<'a> {
    analysis: &'a Analysis,
    groups: &'a Groups,
    tails: &'a Tails,
}

/// What is worth saying of a run, the largest saving first; at most seven findings, and none where
/// there is nothing to say.
#[must_use]
pub fn findings(analysis: &Analysis, groups: &Groups, tails: &Tails) -> Vec<Finding> {
    let evidence = Evidence { analysis, groups, tails };
    let explained = calls::Explained::new(&evidence);
    let mut found = calls::first(&evidence, &explained);
    found.extend(calls::rare(&evidence, &explained));
    found.extend(calls::tiny(&evidence, &explained));
    for group in (0..).zip(&groups.rows) {
        found.extend(threads::slow(&evidence, &explained, group));
        found.extend(threads::sub_groups(&evidence, group));
        found.extend(waits::lock(&evidence, group));
        found.extend(waits::starved(&evidence, group));
    }
    found.sort_by_key(|finding| (std::cmp::Reverse(finding.saves_ns), finding.group));
    found.truncate(MOST);
    found
}

impl Evidence<'_> {
    /// Whether a saving of a group is worth a sentence.
    fn is_material(&self, saves_ns: f64) -> bool {
        saves_ns >= MATERIAL_NS && saves_ns >= MATERIAL_SHARE * self.analysis.wall_ns.as_f64()
    }

    fn finding(
        &self,
        group: u32,
        threads: Vec<u32>,
        api: Option<u32>,
        saves_ns: f64,
        kind: FindingKind,
    ) -> Finding {
        let wall = self.analysis.wall_ns.as_f64();
        let share = if wall > 0.0 { saves_ns / wall } else { 0.0 };
        Finding { group, threads, api, saves_ns: Ns::from_f64(saves_ns), share, kind }
    }

    /// Of each member, its waits in an API.
    fn waits_in(&self, group: &GroupRow, api: u32) -> Vec<(f64, u32)> {
        let wait = |&thread: &u32| {
            let apis = &self.analysis.threads[thread as usize].apis;
            let found = apis.binary_search_by_key(&api, |row| row.api).ok();
            (found.map_or(0.0, |at| apis[at].wait_ns.as_f64()), thread)
        };
        group.members.iter().map(wait).collect()
    }
}
