//! Parts of findings.

use serde::Serialize;

use crate::clock::Ns;

/// The call inside in which a slow call spent its time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Inside {
    /// The API, by number in [`Analysis::apis`](crate::Analysis::apis).
    pub api: u32,
    /// How often the thread called it there.
    pub calls: u64,
    /// Total time of these calls.
    pub total_ns: Ns,
}

/// One behaviour within a group.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SubGroupSummary {
    /// The number of threads.
    pub threads: usize,
    /// Where they spend most of their useful time; `None` for their own code.
    pub api: Option<u32>,
    /// The share of it that they spend there.
    pub share: f64,
}
