//! Threads that get their work from another one, or hand it on, item by item; and what a thread waits for itself.

use std::collections::HashSet;

use super::Evidence;
use super::joint::Joint;
use super::waits::CONSUMES;
use crate::causes::{CauseRow, Party, PartyKind, Purpose};
use crate::clock::Ns;
use crate::groups::GroupRow;
use crate::rows::ThreadRow;

/// A thread of a pool that the stage has created does at least this part of what the stage does.
const HELPS: f64 = 0.2;
/// A thread that hardly works itself waits so often for the stage, on average: a helper is told of something now and then.
pub(super) const ITEMS: u64 = 30;
/// It waits for the stage for at least this part of its life.
const MOSTLY: f64 = 0.6;
/// The stage works, or wants to, for at least this part of its life.
const BUSY: f64 = 0.5;
/// Threads of the stage that end less than this part of the waits that another one ends are no part of it.
pub(super) const FEW: f64 = 0.1;
/// For each wait of the others, the stage waits less often for these: a thread that waits for each answer hands nothing on.
pub(super) const ANSWERS: f64 = 0.3;

pub(super) fn is_of(group: u32) -> impl Fn(&Party) -> bool {
    move |party| party.kind == PartyKind::Thread && party.group == Some(group)
}

/// Returns the lifetimes of a group, without waits for the end of others.
pub(super) fn working_ns(evidence: &Evidence<'_>, number: u32, group: &GroupRow) -> f64 {
    let ends = evidence
        .causes_of(number)
        .filter(|row| matches!(row.purpose, Purpose::Join | Purpose::Child));
    let ends: f64 = ends.map(|row| row.wait_ns.as_f64()).sum();
    (group.lifetime_ns.as_f64() - ends).max(1.0)
}

/// What the stage itself waits for.
pub(super) struct OwnWaits {
    /// How long, but for the ends of others.
    pub(super) wait_ns: f64,
    /// How long, with these.
    pub(super) all_ns: f64,
    /// The part of that which is for the disk.
    pub(super) disk_ns: f64,
    /// The API with most of all.
    pub(super) api: Option<u32>,
}

impl OwnWaits {
    /// Returns what the group waits for.
    pub(super) fn of_group(evidence: &Evidence<'_>, group: u32) -> Self {
        let rows = || {
            let rows = evidence.causes_of(group);
            rows.filter(|row| !matches!(row.purpose, Purpose::Join | Purpose::Child))
        };
        let is_disk = |row: &&CauseRow| {
            let purpose = row.purpose;
            matches!(purpose, Purpose::Sync | Purpose::File | Purpose::Page | Purpose::Completion)
        };
        let sum = |rows: &mut dyn Iterator<Item = &CauseRow>| -> f64 {
            rows.map(|row| row.wait_ns.as_f64()).sum()
        };
        Self {
            wait_ns: sum(&mut rows()),
            all_ns: sum(&mut evidence.causes_of(group)),
            disk_ns: sum(&mut rows().filter(is_disk)),
            api: evidence.causes_of(group).max_by_key(|row| row.wait_ns).and_then(|row| row.api),
        }
    }
}

fn members<'e>(evidence: &Evidence<'e>, group: u32) -> impl Iterator<Item = &'e ThreadRow> {
    evidence.groups.threads(evidence.analysis, &evidence.groups.rows[group as usize])
}

/// Whether threads of one group have created threads of the other; where that was not seen, as where chase came later, whether they may have:
/// the first thread of a process may have created all others.
fn is_created_by(evidence: &Evidence<'_>, by: u32, of: u32) -> bool {
    let own: HashSet<(usize, u32)> =
        members(evidence, by).map(|row| (row.process, row.thread)).collect();
    let is_first = |row: &&ThreadRow| {
        evidence.analysis.processes.get(row.process).is_some_and(|process| process.pid == row.tid)
    };
    let first: HashSet<usize> =
        members(evidence, by).filter(is_first).map(|row| row.process).collect();
    members(evidence, of).any(|row| match row.creator {
        Some(creator) => own.contains(&(row.process, creator)),
        None => first.contains(&row.process) && !is_first(&row),
    })
}

/// Whether processes of one group have started processes of the other.
fn is_started_by(evidence: &Evidence<'_>, by: u32, of: u32) -> bool {
    let own: HashSet<usize> = members(evidence, by).map(|row| row.process).collect();
    members(evidence, of).any(|row| {
        let process = evidence.analysis.processes.get(row.process);
        let parent = process.and_then(|process| process.parent);
        parent.is_some_and(|parent| parent != row.process && own.contains(&parent))
    })
}

/// Returns how much threads that wait for a stage use the processor at least, as a part of what the stage does. A pool that the stage has
/// created is there to help it, as those of runtimes for collecting garbage or for looking up names.
pub(super) fn least_work(evidence: &Evidence<'_>, slow: u32, waiting: u32) -> f64 {
    let threads = evidence.groups.rows[waiting as usize].threads;
    if threads > 1 && is_created_by(evidence, slow, waiting) {
        HELPS * threads as f64
    } else {
        CONSUMES
    }
}

/// Returns the threads of a group that end the waits, but for those that end few.
fn ending<'e>(evidence: &Evidence<'e>, group: u32, joint: &Joint<'_>) -> Vec<&'e ThreadRow> {
    let mut waking = joint.waking_threads();
    waking.retain(|span| evidence.groups.of_thread.get(span.thread as usize) == Some(&group));
    let most = waking.first().map_or(0.0, |span| span.ns.as_f64());
    let wanted = waking.iter().filter(|span| span.ns.as_f64() >= FEW * most);
    wanted.map(|span| &evidence.analysis.threads[span.thread as usize]).collect()
}

/// Whether several of these threads work at once: they are no single one that all wait for.
fn share_work(threads: &[&ThreadRow]) -> bool {
    let mut lives: Vec<(u64, u64)> =
        threads.iter().map(|row| (row.start_ns.0, row.end_ns.0)).collect();
    lives.sort_unstable();
    lives.windows(2).any(|pair| pair[1].0 < pair[0].1)
}

/// Whether what a group gets comes from one thread of a stage alone, and nothing goes back: the stage waits for few answers, and
/// neither side has created the other. A thread that waits for one that it has created has nothing else to do meanwhile.
fn is_one_way(evidence: &Evidence<'_>, slow: u32, (waiting, joint): (u32, &Joint<'_>)) -> bool {
    // (To release a lock, as the interpreter's, is no answer.)
    let answered = evidence.causes_of(slow).filter(|row| !row.purpose.is_lock());
    let answers = answered.flat_map(|row| &row.wakers).filter(|w| is_of(waiting)(w));
    let answers: u64 = answers.map(|waker| waker.waits).fold(0, u64::saturating_add);
    !share_work(&ending(evidence, slow, joint))
        && (answers as f64) < ANSWERS * joint.waits() as f64
        && !is_created_by(evidence, slow, waiting)
        && !is_created_by(evidence, waiting, slow)
}

/// Whether a stage feeds an event loop. One that serves several clients, answers, or waits for its own workers, waits for whatever
/// comes next: nothing limits it.
pub(super) fn feeds_loop(
    evidence: &Evidence<'_>,
    slow: u32,
    (waiting, joint): (u32, &Joint<'_>),
) -> bool {
    is_one_way(evidence, slow, (waiting, joint))
        && !is_started_by(evidence, slow, waiting)
        && !is_started_by(evidence, waiting, slow)
}

/// Whether a group that hardly uses the processor waits for a stage all the same: for one thread that works all the time, item
/// by item. The worse a stage limits, the less the others have to do. Helpers hardly work either, but they are told of few things,
/// or answer at once, or wait for the thread that has created them.
pub(super) fn is_flow(
    evidence: &Evidence<'_>,
    slow: u32,
    (waiting, joint): (u32, &Joint<'_>),
    waits_ns: f64,
) -> bool {
    let waiting_group = &evidence.groups.rows[waiting as usize];
    let ending = ending(evidence, slow, joint);
    let wanted = ending.iter().map(|row| {
        let ready = row.off_cpu.runnable_ns.map_or(0.0, Ns::as_f64);
        row.on_cpu_ns.map_or(0.0, Ns::as_f64) + ready
    });
    let lives: f64 = ending.iter().map(|row| row.lifetime_ns.as_f64()).sum();
    let is_busy = wanted.sum::<f64>() >= BUSY * lives;
    let threads = joint.by_thread().len() as u64;
    let is_often = joint.waits() >= ITEMS.saturating_mul(threads);
    let is_all = waits_ns >= MOSTLY * working_ns(evidence, waiting, waiting_group);
    is_busy && is_often && is_all && is_one_way(evidence, slow, (waiting, joint))
}

/// Whether the group neither waits for other threads of the run nor lets time pass, nor waits most of its life for anything
/// else that is no work of its own, as a lock or the other end of a connection. The disk works for it.
pub(super) fn works_all_the_time(
    evidence: &Evidence<'_>,
    (number, group): (u32, &GroupRow),
    own: &OwnWaits,
    (by_others, by_all): (f64, f64),
) -> bool {
    let waits = evidence.causes_of(number).map(|row| match row.purpose {
        Purpose::Sleep | Purpose::Readiness => row.wait_ns.as_f64(),
        Purpose::Join | Purpose::Child => 0.0,
        _ => {
            let wakers = row.wakers.iter();
            let others = wakers.filter(|waker| {
                waker.kind == PartyKind::Thread && waker.group.is_some_and(|group| group != number)
            });
            others.map(|waker| waker.wait_ns.as_f64()).sum()
        }
    });
    let life = working_ns(evidence, number, group);
    waits.sum::<f64>() <= by_others * life && own.wait_ns - own.disk_ns <= by_all * life
}
