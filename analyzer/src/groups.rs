//! Thread groups: threads that run the same code, and how they compare.

mod compare;
mod key;
mod labels;
mod parts;
mod rows;
mod vectors;
mod why;

use crate::analysis::Analysis;
use crate::rows::ThreadRow;

pub(crate) use compare::spread;
pub use key::{Closure, GroupKey, GroupKind, Naming, Unnamed, group_of};
pub use rows::{
    CausedWait, GroupApi, GroupComparison, GroupPart, GroupRow, Outlier, OutlierApi, PartLevel,
    Spread, SubGroup, ThreadSpan,
};
pub use why::{Reason, Why};

/// The groups of all threads of an analysis.
///
/// The main threads of an executable are a group of their own, and so are the processes forked by one process.
/// Imbalance is about threads that share work; a main thread that waits in join would look like one.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Groups {
    /// Sorted by total thread time, longest first.
    pub rows: Vec<GroupRow>,
    /// The row of each thread's group, by number of the thread in [`Analysis::threads`].
    #[serde(skip)]
    pub of_thread: Vec<u32>,
}

impl Groups {
    /// Groups the threads of `analysis`. Takes time and memory linear in threads and their APIs, except for sorting.
    #[must_use]
    pub fn new(analysis: &Analysis, naming: &dyn Naming) -> Self {
        let groups = key::collect(analysis, naming);
        let mut rows: Vec<GroupRow> = groups
            .into_iter()
            .map(|(key, members)| compare::row(analysis, naming, key, members))
            .collect();
        rows.sort_by(|a, b| {
            (b.lifetime_ns, &a.label, a.members.first()).cmp(&(
                a.lifetime_ns,
                &b.label,
                b.members.first(),
            ))
        });
        labels::tell_apart(analysis, &mut rows);
        let mut of_thread = vec![0; analysis.threads.len()];
        for (number, row) in (0..).zip(&rows) {
            row.members.iter().for_each(|&thread| of_thread[thread as usize] = number);
        }
        Self { rows, of_thread }
    }

    /// Returns the threads of a group.
    pub fn threads<'a>(
        &self,
        analysis: &'a Analysis,
        group: &'a GroupRow,
    ) -> impl ExactSizeIterator<Item = &'a ThreadRow> {
        group.members.iter().map(|&thread| &analysis.threads[thread as usize])
    }
}
