//! Locks, as observed by a companion: which one, who holds it, where others wait for it.

use std::collections::BTreeMap;

use super::crowded::uncrowded;
use super::holders::has_idle_holders;
use super::interpreter;
use super::joint::Joint;
use super::waits::{SERIALISES, named};
use super::{Evidence, Finding, FindingKind};
use crate::causes::{CauseRow, LockKey, PartyKind, PathWait, Purpose, lock_key};
use crate::clock::Ns;
use crate::groups::GroupRow;

/// Functions by which readers take a lock.
const READ: &[&str] = &["pthread_rwlock_rdlock", "pthread_rwlock_timedrdlock"];

/// The interpreter's lock, which consists of several words, has none, nor has that of the memory map, which is the kernel's.
fn key(row: &CauseRow) -> Option<LockKey> {
    let is_one_word = !matches!(row.purpose, Purpose::Interpreter | Purpose::MemoryMap);
    is_one_word.then(|| lock_key(&row.object, row.process)).flatten()
}

/// Finds, for each kind of lock, the one for which a group waits longest.
pub(super) fn find(evidence: &Evidence<'_>, (number, group): (u32, &GroupRow)) -> Vec<Finding> {
    let mut of_kinds: BTreeMap<u8, BTreeMap<Option<LockKey>, Joint<'_>>> = BTreeMap::new();
    for row in evidence.causes_of(number).filter(|row| row.purpose.is_lock()) {
        let kind = match row.purpose {
            Purpose::Allocator => 1,
            Purpose::Interpreter => 2,
            Purpose::MemoryMap => 3,
            _ => 0,
        };
        of_kinds.entry(kind).or_default().entry(key(row)).or_default().rows.push(row);
    }
    let longest = |locks: BTreeMap<Option<LockKey>, Joint<'_>>| {
        let joint = locks.into_values().max_by(|a, b| a.wait_ns().total_cmp(&b.wait_ns()))?;
        lock(evidence, number, group, &joint)
    };
    of_kinds.into_values().filter_map(longest).collect()
}

fn lock(
    evidence: &Evidence<'_>,
    number: u32,
    group: &GroupRow,
    joint: &Joint<'_>,
) -> Option<Finding> {
    let waits = joint.by_thread();
    let saves_ns = waits.first()?.0;
    let of_lifetime = joint.wait_ns() / group.lifetime_ns.as_f64().max(1.0);
    let first = joint.rows.first()?;
    let is_one = |wait: &PathWait| match key(first) {
        Some(key) => lock_key(&wait.object, wait.process) == Some(key),
        None => wait.purpose == first.purpose,
    };
    let uncrowded = uncrowded(evidence, &group.members, joint.wait_ns(), is_one);
    if of_lifetime < SERIALISES
        || uncrowded.share() < SERIALISES
        || !evidence.is_material(saves_ns)
        || has_idle_holders(evidence, group, |wait| is_one(&wait.wait))
    {
        return None;
    }
    let mut blame = joint.blame()?;
    if first.purpose == Purpose::Interpreter {
        blame.holder = interpreter::holder(evidence, group, joint);
    }
    let (wait_ns, all_wait_ns) = (Ns::from_f64(saves_ns), Ns::from_f64(joint.wait_ns()));
    let kind = match first.purpose {
        Purpose::Allocator => {
            FindingKind::AllocatorContention { wait_ns, all_wait_ns, of_lifetime }
        }
        Purpose::Interpreter => {
            let others = Vec::new();
            FindingKind::InterpreterLock { wait_ns, all_wait_ns, of_lifetime, others }
        }
        Purpose::MemoryMap => {
            let others = Vec::new();
            FindingKind::MemoryMapLock { wait_ns, all_wait_ns, of_lifetime, others }
        }
        _ if joint.rows.iter().all(|row| row.purpose == Purpose::WriteLock)
            && readers_end(evidence, number, joint) =>
        {
            FindingKind::StarvedWriter { wait_ns, all_wait_ns, of_lifetime }
        }
        _ => FindingKind::SerialisingLock {
            wait_ns,
            all_wait_ns,
            of_lifetime,
            inside: blame.api.and_then(|api| super::waits::inside(evidence, group, api)),
            others: Vec::new(),
        },
    };
    let api = blame.api;
    let finding = evidence.finding(number, named(waits), api, saves_ns, kind);
    Some(Finding { blame: Some(blame), ..finding })
}

/// Whether the waits were ended by reading threads of other groups.
fn readers_end(evidence: &Evidence<'_>, writers: u32, joint: &Joint<'_>) -> bool {
    let reads = |group: u32| {
        evidence.groups.rows[group as usize].apis.iter().any(|row| {
            row.calls > 0
                && row.api.is_some_and(|api| {
                    let symbol = &*evidence.analysis.apis[api as usize].symbol;
                    READ.contains(&symbol.trim_start_matches('_'))
                })
        })
    };
    joint.ended_by(|waker| {
        waker.kind == PartyKind::Thread
            && waker.group.is_some_and(|group| group != writers && reads(group))
    }) >= 0.5
}

/// Makes one finding of those about the same lock: that of the group with the longest wait of a thread.
pub(super) fn each_once(found: Vec<Finding>) -> Vec<Finding> {
    let (mut of_locks, mut rest): (Vec<Finding>, Vec<Finding>) =
        found.into_iter().partition(|finding| which(finding).is_some());
    of_locks.sort_by_key(|finding| (std::cmp::Reverse(finding.saves_ns), finding.group));
    let mut kept: Vec<Finding> = Vec::new();
    for finding in of_locks {
        let lock = which(&finding);
        match kept.iter_mut().find(|known| which(known) == lock).map(|known| &mut known.kind) {
            Some(
                FindingKind::SerialisingLock { others, .. }
                | FindingKind::InterpreterLock { others, .. }
                | FindingKind::MemoryMapLock { others, .. },
            ) => others.push(finding.group),
            _ => kept.push(finding),
        }
    }
    rest.append(&mut kept);
    rest
}

/// The locks of which each process has one, and all others.
#[derive(PartialEq)]
enum Which {
    Interpreter,
    MemoryMap,
    Other(LockKey),
}

/// Which lock a finding is about, and of which process.
fn which(finding: &Finding) -> Option<(Which, usize)> {
    let blame = finding.blame.as_ref()?;
    match finding.kind {
        FindingKind::InterpreterLock { .. } => Some((Which::Interpreter, blame.process)),
        FindingKind::MemoryMapLock { .. } => Some((Which::MemoryMap, blame.process)),
        FindingKind::SerialisingLock { .. } => {
            let key = lock_key(blame.object.as_ref()?, blame.process)?;
            Some((Which::Other(key), blame.process))
        }
        _ => None,
    }
}
