//! Threads of a group that wait for each other by other means than a lock or a barrier.

use std::collections::BTreeMap;

use super::crowded::uncrowded;
use super::holders::has_idle_holders;
use super::joint::Joint;
use super::waits::{LEAST_SIGNALS, ONE_WAIT, named};
use super::{Evidence, Finding, FindingKind};
use crate::causes::{CauseRow, Party, PartyKind, Purpose};
use crate::clock::Ns;
use crate::groups::{GroupRow, ThreadSpan};
use crate::rows::ThreadRow;
use crate::wait_causes::is_of_ruby;

/// Of threads of which one runs at a time, each waits for at least so much of its life.
const MOSTLY: f64 = 0.5;
/// Of threads that take turns, none ends more of the others' waits than this.
const EVENLY: f64 = 0.6;
/// Threads that wait for less than this part of what another one waits for are not among them.
const TAKES_PART: f64 = 0.2;
/// Where other threads end this part of the waits, they give work to the group.
const GIVEN: f64 = 0.25;
/// With fewer threads, it is a conversation.
const LEAST_THREADS: usize = 3;

/// Finds groups whose threads spend most of their time waiting for each other, at conditions or descriptors of their own:
/// at monitors of a runtime, or locks of a database.
pub(super) fn waits(evidence: &Evidence<'_>, (number, group): (u32, &GroupRow)) -> Option<Finding> {
    let is_of_ruby = |row: &ThreadRow| is_of_ruby(row, &evidence.analysis.objects);
    let is_own = |party: &Party| party.kind == PartyKind::Thread && party.group == Some(number);
    let part = |row: &CauseRow| {
        let ended = row.wakers.iter().filter(|waker| is_own(waker));
        let ns: f64 = ended.map(|waker| waker.wait_ns.as_f64()).sum();
        (ns / row.wait_ns.as_f64().max(1.0)).min(1.0)
    };
    let is_meant = |purpose: Purpose| {
        purpose.is_handover() || matches!(purpose, Purpose::Readiness | Purpose::Network)
    };
    let rows = evidence.causes_of(number);
    let rows = rows.filter(|row| is_meant(row.purpose) && row.wakers.iter().any(is_own));
    let joint: Joint<'_> = rows.collect();
    let mut waits = joint.by_thread_where(part);
    let saves_ns = waits.first()?.0;
    waits.retain(|&(ns, _)| ns >= TAKES_PART * saves_ns);
    let all_ns: f64 = waits.iter().map(|(ns, _)| ns).sum();
    let uncrowded = uncrowded(evidence, &group.members, all_ns, |wait| is_meant(wait.purpose));
    let of_lifetime = uncrowded.share();
    if waits.len() < LEAST_THREADS
        || of_lifetime < MOSTLY
        || joint.waits() < LEAST_SIGNALS
        // Idle threads of a pool pass the word on to each other that all is over.
        || joint.max_ns() > ONE_WAIT * saves_ns
        || !evidence.is_material(saves_ns)
        || group.takes_any_task
        || evidence.groups.threads(evidence.analysis, group).any(is_of_ruby)
        || joint.ended_by(|party| party.kind == PartyKind::Thread && !is_own(party)) >= GIVEN
        || has_idle_holders(evidence, group, |wait| wait.wait.purpose.is_handover())
    {
        return None;
    }
    // All of them end waits, too.
    let mut waking = joint.waking_threads();
    waking.retain(|span| group.members.contains(&span.thread));
    let are_all = waits.iter().all(|&(_, thread)| waking.iter().any(|span| span.thread == thread));
    let all: f64 = waking.iter().map(|span| span.ns.as_f64()).sum();
    if !are_all || most_by_one(evidence, &waking) > EVENLY * all {
        return None;
    }
    let kind = FindingKind::MutualWaits {
        wait_ns: Ns::from_f64(saves_ns),
        all_wait_ns: Ns::from_f64(all_ns),
        of_lifetime,
        of_threads: waits.len(),
    };
    let blame = joint.blame()?;
    let finding = evidence.finding(number, named(waits), blame.api, saves_ns, kind);
    // Mostly, each thread waits at a place of its own.
    let same = joint.rows.iter().filter(|row| Some(&row.object) == blame.object.as_ref());
    let same_ns: f64 = same.map(|row| row.wait_ns.as_f64()).sum();
    let object = blame.object.clone().filter(|_| same_ns >= MOSTLY * joint.wait_ns());
    Some(Finding { blame: Some(super::Blame { object, ..blame }), ..finding })
}

/// How long the waits are that one thread has ended: of each process in which several take part, its own; of the others,
/// one of them all. (In each process of a server, one thread may give work to the rest.)
fn most_by_one(evidence: &Evidence<'_>, waking: &[ThreadSpan]) -> f64 {
    let mut by_process = BTreeMap::<usize, (usize, f64)>::new();
    for span in waking {
        let Some(row) = evidence.analysis.threads.get(span.thread as usize) else { continue };
        let (threads, most) = by_process.entry(row.process).or_default();
        (*threads, *most) = (*threads + 1, most.max(span.ns.as_f64()));
    }
    let (several, others): (Vec<_>, Vec<_>) =
        by_process.into_values().partition(|&(threads, _)| threads >= LEAST_THREADS);
    let most_of_others = others.iter().map(|&(_, most)| most).fold(0.0, f64::max);
    several.iter().map(|&(_, most)| most).sum::<f64>() + most_of_others
}
