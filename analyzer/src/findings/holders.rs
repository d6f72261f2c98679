//! What those do that others wait for.

use std::collections::HashMap;

use super::Evidence;
use super::flows::{ANSWERS, is_of};
use super::polling::HANDS_OUT;
use crate::causes::{PartyKind, Purpose, WaitObject};
use crate::groups::GroupRow;
use crate::long_waits::LongWait;
use crate::spans::parts_of;

/// Who waits for this part of the time in which others wait for it has nothing to do.
const MOSTLY: f64 = 0.5;

/// Whether those that have what the others wait for mostly wait for work themselves then: one worker of an idle `multiprocessing.Pool` has the lock
/// of the queue and waits until its parent has put something in, and the others wait for that lock; threads may share the receiver of a channel so.
/// Who waits for room to write something has no lack of work, nor has who waits for what a process answers that it has started meanwhile.
/// `is_for_it` tells which waits are for that.
pub(super) fn has_idle_holders(
    evidence: &Evidence<'_>,
    group: &GroupRow,
    is_for_it: impl Fn(&LongWait) -> bool,
) -> bool {
    let Some(times) = &evidence.watched.times else { return false };
    let row = |thread: u32| &evidence.analysis.threads[thread as usize];
    let group_of = |thread: u32| evidence.groups.of_thread.get(thread as usize).copied();
    let givers = givers(evidence, group);
    let gives_work = |to: u32, by: u32| {
        evidence.analysis.processes[row(to).process].parent == Some(row(by).process)
            || group_of(by).is_some_and(|by| givers.contains(&by))
    };
    let has_started = |holder: u32, other: u32, since: u64| {
        let processes = &evidence.analysis.processes;
        let mut child = row(other).process;
        // (From parent to parent; no more of them than there are processes.)
        for _ in processes {
            match processes[child].parent {
                Some(parent) if parent == row(holder).process => {
                    return processes[child].start_ns.0 >= since;
                }
                Some(parent) => child = parent,
                None => return false,
            }
        }
        false
    };
    // When a thread got something that others wait for, by what it is.
    let mut gotten: HashMap<(&WaitObject, u32), Vec<u64>> = HashMap::new();
    let mut waits: Vec<&LongWait> = Vec::new();
    for &member in &group.members {
        for wait in times[member as usize].waits.iter().filter(|wait| is_for_it(wait)) {
            gotten.entry((&wait.wait.object, member)).or_default().push(wait.end_ns);
            waits.push(wait);
        }
    }
    let (mut held_ns, mut idle_ns) = (0, 0);
    for wait in waits {
        let end_ns = wait.woken_ns.unwrap_or(wait.end_ns);
        let Some(holder) = wait.waker else { continue };
        let Some(times_gotten) = gotten.get(&(&wait.wait.object, holder)) else { continue };
        let before = times_gotten.partition_point(|&at| at <= end_ns);
        let Some(&since) = before.checked_sub(1).and_then(|at| times_gotten.get(at)) else {
            continue;
        };
        let held = (since.max(wait.begin_ns), end_ns);
        held_ns += held.1.saturating_sub(held.0);
        let its_waits = &times[holder as usize].waits;
        for (own, part) in parts_of(its_waits, |own| (own.begin_ns, own.end_ns), held) {
            let is_for_room = own.syscall.is_some_and(|number| HANDS_OUT.contains(&number));
            let is_for_work = own.wait.purpose.is_handover()
                && !is_for_room
                && own
                    .waker
                    .is_some_and(|by| gives_work(holder, by) && !has_started(holder, by, since));
            idle_ns += if is_for_work { part.1.saturating_sub(part.0) } else { 0 };
        }
    }
    held_ns > 0 && idle_ns as f64 >= MOSTLY * held_ns as f64
}

/// The groups of threads that hand things to those of this one and hardly wait for anything from them but their ends: who answers is asked first.
fn givers(evidence: &Evidence<'_>, group: &GroupRow) -> Vec<u32> {
    let Some(&own) =
        group.members.first().and_then(|&member| evidence.groups.of_thread.get(member as usize))
    else {
        return Vec::new();
    };
    let waits_of = |waiting: u32, by: u32, is_meant: fn(Purpose) -> bool| {
        let rows = evidence.causes_of(waiting).filter(|row| is_meant(row.purpose));
        let wakers = rows.flat_map(|row| &row.wakers).filter(|waker| is_of(by)(waker));
        wakers.map(|waker| waker.waits).fold(0, u64::saturating_add) as f64
    };
    let rows = evidence.causes_of(own).filter(|row| row.purpose.is_handover());
    let wakers = rows.flat_map(|row| &row.wakers);
    let others =
        wakers.filter(|waker| waker.kind == PartyKind::Thread).filter_map(|waker| waker.group);
    let mut givers: Vec<u32> = others.filter(|&other| other != own).collect();
    givers.sort_unstable();
    givers.dedup();
    let is_answer = |purpose: Purpose| !purpose.is_lock() && purpose != Purpose::Join;
    givers.retain(|&giver| {
        waits_of(giver, own, is_answer) < ANSWERS * waits_of(own, giver, Purpose::is_handover)
    });
    givers
}
