//! What is said of a group. Names in JSON are those of the fields.

use serde::Serialize;

use super::key::GroupKind;
use super::why::Why;
use crate::address::CodeAddress;
use crate::blocking::Cause;
use crate::clock::Ns;

/// A group of threads.
#[derive(Clone, Debug, Serialize)]
pub struct GroupRow {
    /// What it is called; no two groups are called the same.
    pub label: String,
    /// What sort of threads it has.
    pub kind: GroupKind,
    /// Path of their executable.
    pub executable: String,
    /// What their programs were started as.
    pub program: String,
    /// Start routine.
    pub start_routine: Option<CodeAddress>,
    /// Where they were created: return address of the call.
    pub creation_site: Option<CodeAddress>,
    /// Name of the threads, digits at its end folded; empty where they have several.
    pub name: String,
    /// How many there were.
    pub threads: usize,
    /// Most of them that lived at one time.
    pub concurrency: usize,
    /// From the first start to the last end.
    pub wall_ns: Ns,
    /// Lifetimes of all of them.
    pub lifetime_ns: Ns,
    /// Their application time.
    pub application_ns: Ns,
    /// Their self times in library calls.
    pub library_ns: Ns,
    /// The part of it in which they waited.
    pub wait_ns: Ns,
    /// Application and library time without waits.
    pub useful_ns: Ns,
    /// Library calls begun.
    pub calls: u64,
    /// Shortest, median and longest lifetime.
    pub lifetime: Spread,
    /// Useful time: application and library time without waits.
    pub useful: Spread,
    /// How their useful times compare.
    #[serde(flatten)]
    pub comparison: GroupComparison,
    /// Whether values of threads are compared as parts of their lifetimes: the threads started at
    /// different times and ended together, so that those that lived longer did more.
    pub as_rates: bool,
    /// Whether the longest lifetime is more than twice the shortest.
    pub unlike_lifetimes: bool,
    /// What they waited for, most first.
    pub waits: Vec<CausedWait>,
    /// Their APIs and, with `api` null, their own code; most useful time and waits first.
    pub apis: Vec<GroupApi>,
    /// Threads that differ from the others, by what it costs.
    pub outliers: Vec<Outlier>,
    /// What tells its threads apart, if that goes with what they do; empty otherwise.
    pub parts: Vec<GroupPart>,
    /// Behaviours behind the one start routine, if there are several.
    pub sub_groups: Vec<SubGroup>,
    /// Threads, by number in [`Analysis::threads`](crate::Analysis::threads).
    pub members: Vec<u32>,
}

/// A value of each thread, of a group of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Spread {
    /// Least.
    pub min_ns: Ns,
    /// Median.
    pub median_ns: Ns,
    /// Most.
    pub max_ns: Ns,
    /// Who has the least, by number in [`Analysis::threads`](crate::Analysis::threads).
    pub min_thread: u32,
    /// Who has the most.
    pub max_thread: u32,
}

/// How evenly useful time is spread over threads; [`stats`](crate::imbalance) has the formulas.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct GroupComparison {
    /// max − mean.
    pub imbalance_ns: Ns,
    /// (max − mean) / max · N / (N − 1), a fraction of 1.
    pub imbalance: f64,
    /// LB = mean / max. POP calls 0.8 and more good.
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
    /// What for.
    pub cause: Cause,
    /// By all threads.
    pub wait_ns: Ns,
    /// How many waited.
    pub threads: usize,
    /// The one that waited most.
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
    /// How many threads called it.
    pub threads: usize,
    /// Useful time by thread; of a waiting API, waits by thread.
    pub spread: Spread,
    /// max − mean.
    pub imbalance_ns: Ns,
    /// As [`GroupComparison::imbalance`].
    pub imbalance: f64,
}

/// A thread that differs.
#[derive(Clone, Debug, Serialize)]
pub struct Outlier {
    /// The thread, by number in [`Analysis::threads`](crate::Analysis::threads).
    pub thread: u32,
    /// Its useful time.
    pub useful_ns: Ns,
    /// Median of the threads it is compared with.
    pub median_ns: Ns,
    /// By how much it exceeds the median in the APIs below, or falls short, if negative.
    pub excess_ns: i64,
    /// In which APIs, the one that matters most first.
    pub apis: Vec<OutlierApi>,
}

/// An API that makes a thread an outlier.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct OutlierApi {
    /// The API, by number in [`Analysis::apis`](crate::Analysis::apis); `None` for own code.
    pub api: Option<u32>,
    /// The thread's useful time in it.
    pub useful_ns: Ns,
    /// Median of the threads it is compared with.
    pub median_ns: Ns,
    /// What it would save if it were normal: the difference.
    pub excess_ns: i64,
    /// Robust standard deviations from the median; more than 3.5 either way.
    pub score: f64,
    /// Whether it is the number of calls, what they were asked to do, or how long each took; `None` for own code.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<Why>,
}

/// By what the threads of a group are told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PartLevel {
    /// The function that created them, or the place in it.
    CreationSite,
    /// Their name, digits at its end folded.
    Name,
}

/// Threads of a group that are alike in where they were created, or in their name.
#[derive(Clone, Debug, Serialize)]
pub struct GroupPart {
    /// In which of the two.
    pub level: PartLevel,
    /// The function that created them, if it is known and makes the part.
    pub created_in: Option<String>,
    /// Where the first of them was created.
    pub creation_site: Option<CodeAddress>,
    /// Name of the first of them, digits at its end folded.
    pub name: String,
    /// How many there are.
    pub threads: usize,
    /// Their useful time.
    pub useful_ns: Ns,
    /// Their waits.
    pub wait_ns: Ns,
    /// Threads, by number in [`Analysis::threads`](crate::Analysis::threads).
    pub members: Vec<u32>,
}

/// Threads of a group that spend their time alike.
#[derive(Clone, Debug, Serialize)]
pub struct SubGroup {
    /// Threads, by number in [`Analysis::threads`](crate::Analysis::threads).
    pub members: Vec<u32>,
    /// Their useful time.
    pub useful_ns: Ns,
    /// The APIs that they spend most of it in (`None`: own code) and the share of each.
    pub apis: Vec<(Option<u32>, f64)>,
    /// Mean silhouette of the clustering, the same for all sub-groups of a group.
    pub silhouette: f64,
}
