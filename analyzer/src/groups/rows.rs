//! The rows of groups. Names in JSON are those of the fields.

use serde::Serialize;

use super::key::GroupKind;
use super::why::Why;
use crate::address::CodeAddress;
use crate::blocking::Cause;
use crate::clock::Ns;

/// A group of threads.
#[derive(Clone, Debug, Serialize)]
pub struct GroupRow {
    /// Its label, which is unique.
    pub label: String,
    /// The kind of threads in it.
    pub kind: GroupKind,
    /// Path of their executable.
    pub executable: String,
    /// The name that their programs were started as.
    pub program: String,
    /// Start routine.
    pub start_routine: Option<CodeAddress>,
    /// Where they were created: the return address of the call.
    pub creation_site: Option<CodeAddress>,
    /// Name of the threads, with digits at its end folded; empty if they have several.
    pub name: String,
    /// Source file and line of what they run, where other functions have its name, too.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// The number of threads.
    pub threads: usize,
    /// The maximum number of them alive at one time.
    pub concurrency: usize,
    /// Time from the first start to the last end.
    pub wall_ns: Ns,
    /// Sum of their lifetimes.
    pub lifetime_ns: Ns,
    /// Their application time.
    pub application_ns: Ns,
    /// Their self times in library calls.
    pub library_ns: Ns,
    /// The part of it in which they waited.
    pub wait_ns: Ns,
    /// Application and library time without waits.
    pub useful_ns: Ns,
    /// By how much the parts exceed the lifetimes, which only happens with contradictory data.
    pub overlap_ns: Ns,
    /// Library calls begun.
    pub calls: u64,
    /// Shortest, median and longest lifetime.
    pub lifetime: Spread,
    /// Useful time: application and library time without waits.
    pub useful: Spread,
    /// How evenly their useful times are distributed.
    #[serde(flatten)]
    pub comparison: GroupComparison,
    /// Whether threads are compared by rates, relative to their lifetimes: they started at different times and ended
    /// together, so those that lived longer did more.
    pub as_rates: bool,
    /// Whether a scheduler of a runtime has its tasks run by them, whichever is free: then they are not compared.
    #[serde(skip)]
    pub takes_any_task: bool,
    /// Whether it is not known what its threads run, and they have no names of their own either: then they are not compared.
    #[serde(skip)]
    pub is_unknown: bool,
    /// Whether the longest lifetime is more than twice the shortest.
    pub unlike_lifetimes: bool,
    /// What they waited for, most first.
    pub waits: Vec<CausedWait>,
    /// Their APIs and, with `api` null, their own code; most useful time and waits first.
    pub apis: Vec<GroupApi>,
    /// Threads that differ from the others, by what it costs.
    pub outliers: Vec<Outlier>,
    /// The parts that its threads can be divided into, if these behave differently; otherwise empty.
    pub parts: Vec<GroupPart>,
    /// Different behaviours behind the one start routine, if any.
    pub sub_groups: Vec<SubGroup>,
    /// Threads, by number in [`Analysis::threads`](crate::Analysis::threads).
    pub members: Vec<u32>,
}

/// The distribution of a value over the threads of a group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Spread {
    /// Minimum.
    pub min_ns: Ns,
    /// Median.
    pub median_ns: Ns,
    /// Maximum.
    pub max_ns: Ns,
    /// The thread with the minimum, by number in [`Analysis::threads`](crate::Analysis::threads).
    pub min_thread: u32,
    /// The thread with the maximum.
    pub max_thread: u32,
}

/// How evenly useful time is distributed over threads; [`imbalance`](crate::imbalance) has the formulas.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct GroupComparison {
    /// max − mean.
    pub imbalance_ns: Ns,
    /// (max − mean) / max · N / (N − 1), a fraction of 1.
    pub imbalance: f64,
    /// LB = mean / max. POP considers 0.8 and more good.
    pub load_balance: f64,
    /// POP's parallel efficiency: LB · max / wall time, which is mean / wall time.
    pub parallel_efficiency: f64,
}

/// A thread and a time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ThreadSpan {
    /// The thread, by number in [`Analysis::threads`](crate::Analysis::threads).
    pub thread: u32,
    /// The time.
    pub ns: Ns,
}

/// Waits for one thing.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct CausedWait {
    /// What was waited for.
    pub cause: Cause,
    /// Waits of all threads.
    pub wait_ns: Ns,
    /// The number of threads that waited.
    pub threads: usize,
    /// The thread that waited most.
    pub max: ThreadSpan,
}

/// What a group spent in an API.
#[derive(Clone, Debug, Serialize)]
pub struct GroupApi {
    /// The API, by number in [`Analysis::apis`](crate::Analysis::apis); `None` for the threads' own
    /// code.
    pub api: Option<u32>,
    /// Calls begun.
    pub calls: u64,
    /// Self time without waits.
    pub useful_ns: Ns,
    /// Waits.
    pub wait_ns: Ns,
    /// The number of threads that called it.
    pub threads: usize,
    /// Useful time by thread; for an API that waits, waits by thread.
    pub spread: Spread,
    /// max − mean.
    pub imbalance_ns: Ns,
    /// Like [`GroupComparison::imbalance`].
    pub imbalance: f64,
}

/// A thread that differs from others.
#[derive(Clone, Debug, Serialize)]
pub struct Outlier {
    /// The thread, by number in [`Analysis::threads`](crate::Analysis::threads).
    pub thread: u32,
    /// Its useful time.
    pub useful_ns: Ns,
    /// Median of the threads that it is compared with.
    pub median_ns: Ns,
    /// By how much it exceeds the median in the APIs below; negative if it is below.
    pub excess_ns: i64,
    /// The APIs in which it differs, the most important first.
    pub apis: Vec<OutlierApi>,
}

/// An API that makes a thread an outlier.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct OutlierApi {
    /// The API, by number in [`Analysis::apis`](crate::Analysis::apis); `None` for own code.
    pub api: Option<u32>,
    /// The thread's useful time in it.
    pub useful_ns: Ns,
    /// Median of the threads that it is compared with.
    pub median_ns: Ns,
    /// The difference: what would be saved if the thread were normal.
    pub excess_ns: i64,
    /// Number of robust standard deviations from the median; more than 3.5 in either direction.
    pub score: f64,
    /// Whether the number of calls, the work per call, or the time per call makes the difference; `None` for own
    /// code.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<Why>,
}

/// What distinguishes the parts of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PartLevel {
    /// The function that created them, or the place in it.
    CreationSite,
    /// Their name, with digits at its end folded.
    Name,
}

/// Threads of a group with the same place of creation, or with the same name.
#[derive(Clone, Debug, Serialize)]
pub struct GroupPart {
    /// What distinguishes the part.
    pub level: PartLevel,
    /// The function that created them, if it is known and distinguishes the part.
    pub created_in: Option<String>,
    /// Where the first of them was created.
    pub creation_site: Option<CodeAddress>,
    /// Name of the first of them, with digits at its end folded.
    pub name: String,
    /// The number of threads.
    pub threads: usize,
    /// Their useful time.
    pub useful_ns: Ns,
    /// Their waits.
    pub wait_ns: Ns,
    /// Threads, by number in [`Analysis::threads`](crate::Analysis::threads).
    pub members: Vec<u32>,
}

/// Threads of a group that spend their time in similar ways.
#[derive(Clone, Debug, Serialize)]
pub struct SubGroup {
    /// Threads, by number in [`Analysis::threads`](crate::Analysis::threads).
    pub members: Vec<u32>,
    /// Their useful time.
    pub useful_ns: Ns,
    /// The APIs in which they spend most of it (`None`: own code), and the share of each.
    pub apis: Vec<(Option<u32>, f64)>,
    /// Mean silhouette of the clustering, the same for all sub-groups of a group.
    pub silhouette: f64,
}
