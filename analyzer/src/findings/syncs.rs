//! Files that are repeatedly written to the disk.

use std::collections::BTreeMap;

use super::files::{self, Files};
use super::joint::Joint;
use super::{Evidence, Finding, FindingKind, behind, uses};
use crate::causes::{CauseRow, PartyKind, Purpose, WaitObject};
use crate::clock::Ns;

/// `msync`, `fsync`, `fdatasync`, `sync`, `sync_file_range`, `syncfs`.
const SYNCS: &[u32] = &[26, 74, 75, 162, 277, 306];

/// `write`, `pwrite64`, `writev`, `pwritev`, `pwritev2`.
const WRITES: &[u32] = &[1, 18, 20, 296, 328];
/// Fewer writes that wait are no habit.
const SEVERAL: u64 = 10;
/// A write to a file that the kernel may keep in memory hardly ever waits: those that wait at least this often each time do so
/// because they have to. The waits of one write may be several.
const EACH_TIME: f64 = 0.5;
/// Where more is written at a time, it is the disk's speed that counts, and not how often it is waited for.
const LARGE_BYTES: f64 = 65_536.0;
/// The part of these waits that the disk ends, or the kernel on its behalf: the rest are those of a writer that the kernel slows down.
const BY_DISK: f64 = 0.5;

/// Finds files that are repeatedly written to the disk.
pub(super) fn syncing(evidence: &Evidence<'_>) -> Option<Finding> {
    let mut of_functions: BTreeMap<(u32, Option<u32>), Vec<uses::Use<'_>>> = BTreeMap::new();
    for one in uses::of_system_calls(evidence, SYNCS) {
        of_functions.entry((one.group, one.api)).or_default().push(one);
    }
    let found = of_functions.into_iter().filter_map(|((group, api), uses)| {
        let (thread, of_thread) = behind::gains_most(evidence, (group, api), &by_thread(&uses))?;
        let saves_ns = of_thread.max(behind::run_gains(evidence, api));
        evidence.is_material(saves_ns).then_some((saves_ns, thread, group, api, uses))
    });
    let (saves_ns, thread, group, api, uses) = found.max_by(|a, b| a.0.total_cmp(&b.0))?;
    let is_it = |row: &CauseRow| row.purpose == Purpose::Sync;
    let waits = evidence.causes_of(group).filter(|row| row.api == api && is_it(row));
    let files = Files::from_waits(waits);
    let kind = FindingKind::Syncing {
        syscall: most(&uses)?.syscall.to_owned(),
        calls: uses.iter().fold(0, |sum, one| sum.saturating_add(one.calls)),
        all_ns: Ns::from_f64(uses.iter().map(|one| one.total_ns).sum()),
        files: files.by_name.len(),
        of_file: files.of_first(),
        by_writes: false,
    };
    let finding = evidence.finding(group, vec![thread], api, saves_ns, kind);
    let file = files::most_used(evidence, group, SYNCS).filter(|_| files.by_name.is_empty());
    Some(Finding { blame: files::of_file(evidence, (group, api), file, is_it), ..finding })
}

/// Finds files of which each write waits for the disk, because they were opened so (`O_SYNC`, `O_DSYNC`, `O_DIRECT`).
pub(super) fn synchronous_writes(evidence: &Evidence<'_>) -> Option<Finding> {
    let mut waits: BTreeMap<(u32, Option<u32>), Joint<'_>> = BTreeMap::new();
    for row in evidence.watched.causes.iter().filter(|row| is_write(row)) {
        waits.entry((row.group, row.api)).or_default().rows.push(row);
    }
    let mut uses: BTreeMap<(u32, Option<u32>), Vec<uses::Use<'_>>> = BTreeMap::new();
    for one in uses::of_system_calls(evidence, WRITES) {
        uses.entry((one.group, one.api)).or_default().push(one);
    }
    let found = waits.into_iter().filter_map(|(key, waits)| {
        let uses = uses.get(&key)?;
        let calls = uses.iter().fold(0, |sum: u64, one| sum.saturating_add(one.calls));
        let bytes = uses.iter().fold(0, |sum: u64, one| sum.saturating_add(one.bytes.unwrap_or(0)));
        let own: Vec<_> = waits.by_thread().into_iter().map(|(ns, thread)| (thread, ns)).collect();
        let (thread, saves_ns) = behind::gains_most(evidence, key, &own)?;
        let by_disk =
            waits.ended_by(|waker| matches!(waker.kind, PartyKind::Interrupt | PartyKind::Kernel));
        let is_each = calls >= SEVERAL
            && waits.waits() as f64 >= EACH_TIME * calls as f64
            && bytes as f64 <= LARGE_BYTES * calls as f64
            && by_disk >= BY_DISK;
        let syscall = most(uses)?.syscall;
        (is_each && evidence.is_material(saves_ns))
            .then_some((saves_ns, thread, key, waits, calls, syscall))
    });
    let (saves_ns, thread, (group, api), waits, calls, syscall) =
        found.max_by(|a, b| a.0.total_cmp(&b.0))?;
    let files = Files::from_waits(waits.rows.iter().copied());
    let kind = FindingKind::Syncing {
        syscall: syscall.to_owned(),
        calls,
        all_ns: Ns::from_f64(waits.wait_ns()),
        files: files.by_name.len(),
        of_file: files.of_first(),
        by_writes: true,
    };
    let finding = evidence.finding(group, vec![thread], api, saves_ns, kind);
    Some(Finding { blame: files::of_file(evidence, (group, api), None, is_write), ..finding })
}

/// Whether threads wait to write a file, which is not a device, nor an interface to the kernel.
fn is_write(row: &CauseRow) -> bool {
    let is_of_disk = |name: &str| {
        let elsewhere = ["/dev/", "/proc/", "/sys/"];
        !name.contains("[") && !elsewhere.iter().any(|start| name.starts_with(start))
    };
    row.purpose == Purpose::File
        && row.syscall.is_some_and(|number| WRITES.contains(&number))
        && matches!(&row.object, WaitObject::File { name } if is_of_disk(name))
}

/// The time of each thread in all of the uses.
fn by_thread(uses: &[uses::Use<'_>]) -> Vec<(u32, f64)> {
    let mut sums = BTreeMap::<u32, f64>::new();
    for &(thread, ns, _) in uses.iter().flat_map(|one| &one.threads) {
        *sums.entry(thread).or_default() += ns;
    }
    sums.into_iter().collect()
}

/// The system call with the longest time.
fn most<'u, 'e>(uses: &'u [uses::Use<'e>]) -> Option<&'u uses::Use<'e>> {
    uses.iter().max_by(|a, b| a.total_ns.total_cmp(&b.total_ns))
}
