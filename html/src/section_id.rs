//! The sections of a page, by name.

use serde::{Deserialize, Serialize};

/// A section of the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SectionId {
    /// What stands out.
    Findings,
    /// Threads by time.
    Timeline,
    /// Objects and functions that ran, as rings.
    Processor,
    /// What threads waited for, as rings.
    Blocked,
    /// Which threads wait for which.
    WaitGraph,
    /// Libraries and their functions as rings.
    Time,
    /// What the time of each library is made of.
    Libraries,
    /// Thread groups.
    Threads,
    /// Quantiles.
    Tail,
    /// Syscalls per function.
    Syscalls,
    /// Calls between libraries.
    Calls,
    /// Flame graphs.
    Flame,
    /// Programs and what connects them.
    Components,
    /// What changed.
    Compare,
    /// All rows.
    Rows,
}

impl SectionId {
    /// Its `id` in the page.
    #[must_use]
    pub fn anchor(self) -> &'static str {
        match self {
            Self::Findings => "findings",
            Self::Timeline => "timeline",
            Self::Processor => "processor",
            Self::Blocked => "blocked",
            Self::WaitGraph => "wait-graph",
            Self::Time => "time",
            Self::Libraries => "libraries",
            Self::Threads => "threads",
            Self::Tail => "tail",
            Self::Syscalls => "syscalls",
            Self::Calls => "calls",
            Self::Flame => "flame",
            Self::Components => "components",
            Self::Compare => "compare",
            Self::Rows => "rows",
        }
    }
}
