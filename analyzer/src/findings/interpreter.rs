//! Who has the Python interpreter while others wait for it.

use std::collections::{BTreeMap, HashMap};

use super::Evidence;
use super::joint::{HAS_IT, Joint};
use crate::causes::{LockKey, Party, PartyKind, lock_key};
use crate::clock::Ns;
use crate::groups::{GroupRow, ThreadSpan};
use crate::long_waits::LongWait;
use crate::spans::{Span, parts_of};

/// Who has it, and when.
type Turn = (u32, Span);

/// Returns the group of those that mostly have the interpreter while threads of `group` wait for it.
///
/// They wait at a condition, which names nobody. But who ends such a wait had the interpreter until then: since somebody let go of it before,
/// or since its own latest wait for it was over.
pub(super) fn holder(
    evidence: &Evidence<'_>,
    group: &GroupRow,
    joint: &Joint<'_>,
) -> Option<Party> {
    let times = evidence.watched.times.as_ref()?;
    let process_of = |thread: u32| evidence.analysis.threads[thread as usize].process;
    let word = word(joint)?;
    let is_for_it =
        |wait: &&LongWait| lock_key(&wait.wait.object, wait.wait.process).as_ref() == Some(&word);
    let waits_of = |thread: u32| times[thread as usize].waits.iter().filter(is_for_it);
    let mut of_processes: BTreeMap<usize, Vec<(u32, &LongWait)>> = BTreeMap::new();
    for thread in 0..times.len() as u32 {
        let waits = waits_of(thread).map(|wait| (thread, wait));
        of_processes.entry(process_of(thread)).or_default().extend(waits);
    }
    let of_processes: BTreeMap<usize, Vec<Turn>> =
        of_processes.into_iter().map(|(process, waits)| (process, turns(&waits))).collect();
    let mut holders: BTreeMap<u32, (u64, BTreeMap<u32, u64>)> = BTreeMap::new();
    for &member in &group.members {
        let turns = of_processes.get(&process_of(member)).map_or(&[][..], Vec::as_slice);
        for wait in waits_of(member) {
            for (&(by, _), part) in parts_of(turns, |turn| turn.1, (wait.begin_ns, woken(wait))) {
                let Some(&of) = evidence.groups.of_thread.get(by as usize) else { continue };
                let (waits, by_thread) = holders.entry(of).or_default();
                *waits += 1;
                *by_thread.entry(by).or_default() += part.1.saturating_sub(part.0);
            }
        }
    }
    let party = |(group, (waits, by_thread)): (u32, (u64, BTreeMap<u32, u64>))| {
        let mut by_thread: Vec<ThreadSpan> =
            by_thread.into_iter().map(|(thread, ns)| ThreadSpan { thread, ns: Ns(ns) }).collect();
        by_thread.sort_by_key(|span| (std::cmp::Reverse(span.ns), span.thread));
        Party {
            kind: PartyKind::Thread,
            group: Some(group),
            name: String::new(),
            api: None,
            site: None,
            process: by_thread.first().map_or(0, |span| process_of(span.thread)),
            waits,
            wait_ns: Ns(by_thread.iter().fold(0, |sum, span| sum + span.ns.0)),
            by_thread,
        }
    };
    let most = holders.into_iter().map(party).max_by_key(|party| party.wait_ns)?;
    // (Once woken, they wait for a processor.)
    let ready_ns: f64 = joint.rows.iter().map(|row| row.ready_ns.as_f64()).sum();
    (most.wait_ns.as_f64() >= HAS_IT * (joint.wait_ns() - ready_ns)).then_some(most)
}

/// The word of the condition: the interpreter's lock has a mutex, too, which is waited for less.
fn word(joint: &Joint<'_>) -> Option<LockKey> {
    let mut words: BTreeMap<LockKey, u64> = BTreeMap::new();
    for row in &joint.rows {
        if let Some(key) = lock_key(&row.object, row.process) {
            let ns = words.entry(key).or_default();
            *ns = ns.saturating_add(row.wait_ns.0);
        }
    }
    words.into_iter().max_by_key(|&(_, ns)| ns).map(|(word, _)| word)
}

/// Who had the interpreter of one process when, by all waits for it, as far as that is known; in order, and without overlaps.
fn turns(waits: &[(u32, &LongWait)]) -> Vec<Turn> {
    let mut let_go: Vec<(u64, u32)> =
        waits.iter().filter_map(|(_, wait)| wait.waker.map(|by| (woken(wait), by))).collect();
    let_go.sort_unstable();
    let mut got: HashMap<u32, Vec<u64>> = HashMap::new();
    for (thread, wait) in waits {
        got.entry(*thread).or_default().push(wait.end_ns);
    }
    let mut since = 0;
    let turn = |(until, by): (u64, u32)| {
        let own = got.get(&by).map_or(&[][..], Vec::as_slice);
        let before = own.partition_point(|&end| end <= until);
        let from = before.checked_sub(1).map_or(since, |last| own[last].max(since));
        since = until;
        (by, (from, until))
    };
    let_go.into_iter().map(turn).collect()
}

fn woken(wait: &LongWait) -> u64 {
    wait.woken_ns.unwrap_or(wait.end_ns).clamp(wait.begin_ns, wait.end_ns)
}
