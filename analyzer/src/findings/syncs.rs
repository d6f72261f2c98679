//! Files that are repeatedly written to the disk.

use std::collections::BTreeMap;

use super::files::{self, Files};
use super::{Evidence, Finding, FindingKind, uses};
use crate::causes::{CauseRow, Purpose};
use crate::clock::Ns;

/// `msync`, `fsync`, `fdatasync`, `sync`, `sync_file_range`, `syncfs`.
const SYNCS: &[u32] = &[26, 74, 75, 162, 277, 306];

/// Finds files that are repeatedly written to the disk.
pub(super) fn syncing(evidence: &Evidence<'_>) -> Option<Finding> {
    let mut of_functions: BTreeMap<(u32, Option<u32>), Vec<uses::Use<'_>>> = BTreeMap::new();
    for one in uses::of(evidence, SYNCS) {
        of_functions.entry((one.group, one.api)).or_default().push(one);
    }
    let found = of_functions.into_iter().filter_map(|((group, api), uses)| {
        let (thread, saves_ns) = longest(&uses)?;
        evidence.is_material(saves_ns).then_some((saves_ns, thread, group, api, uses))
    });
    let (saves_ns, thread, group, api, uses) = found.max_by(|a, b| a.0.total_cmp(&b.0))?;
    let is_it = |row: &CauseRow| row.purpose == Purpose::Sync;
    let waits = evidence.causes_of(group).filter(|row| row.api == api && is_it(row));
    let files = Files::of(waits);
    let kind = FindingKind::Syncing {
        syscall: most(&uses)?.syscall.to_owned(),
        calls: uses.iter().fold(0, |sum, one| sum.saturating_add(one.calls)),
        all_ns: Ns::from_f64(uses.iter().map(|one| one.total_ns).sum()),
        files: files.by_name.len(),
        of_file: files.of_first(),
    };
    let finding = evidence.finding(group, vec![thread], api, saves_ns, kind);
    let file = files::most_used(evidence, group, SYNCS).filter(|_| files.by_name.is_empty());
    Some(Finding { blame: files::of_file(evidence, (group, api), file, is_it), ..finding })
}

/// The thread with the longest time in all of the uses.
fn longest(uses: &[uses::Use<'_>]) -> Option<(u32, f64)> {
    let mut sums = BTreeMap::<u32, f64>::new();
    for &(thread, ns, _) in uses.iter().flat_map(|one| &one.threads) {
        *sums.entry(thread).or_default() += ns;
    }
    sums.into_iter().max_by(|a, b| a.1.total_cmp(&b.1).then(b.0.cmp(&a.0)))
}

/// The system call with the longest time.
fn most<'u, 'e>(uses: &'u [uses::Use<'e>]) -> Option<&'u uses::Use<'e>> {
    uses.iter().max_by(|a, b| a.total_ns.total_cmp(&b.total_ns))
}
