//! Threads of different groups, or processes, that were started together, one of which ends long after the others.

use super::joint::Joint;
use super::{Evidence, Finding, FindingKind};
use crate::causes::{CauseRow, Purpose};
use crate::clock::Ns;
use crate::ends::{LateThread, forked_by};
use crate::stats::median;

/// The others live for at least this part of the life of the late one: with less, it simply is what the program does.
const WORKED: f64 = 0.05;
/// A thread that waits for others, or for events, during more of its life than this is there for them.
const SERVES: f64 = 0.5;
/// The creator waits for at least this part of what the late thread does alone.
const AWAITED: f64 = 0.5;
/// A thread is late by locks if so much of the time is explained by them.
const BY_LOCKS: f64 = 0.5;

/// Finds the last of threads that run different functions. `found` are other findings: those of threads that run the same one
/// among them.
pub(super) fn last_of_several(evidence: &Evidence<'_>, found: &[Finding]) -> Vec<Finding> {
    let is_said = |late: &&LateThread| {
        let mut others = found.iter();
        others.any(|other| {
            matches!(other.kind, FindingKind::LastToEnd { .. })
                && other.threads.first() == Some(&late.thread)
        })
    };
    let late = evidence.watched.late.iter().filter(|late| !late.is_group || late.is_process);
    late.filter(|late| !is_said(late)).filter_map(|late| last(evidence, late)).collect()
}

fn last(evidence: &Evidence<'_>, late: &LateThread) -> Option<Finding> {
    let thread = &evidence.analysis.threads[late.thread as usize];
    let group = *evidence.groups.of_thread.get(late.thread as usize)?;
    let saves_ns = late.alone_ns.as_f64();
    let lifetime = |&other: &u32| evidence.analysis.threads[other as usize].lifetime_ns.as_f64();
    let mut lifetimes: Vec<f64> = late.others.iter().map(lifetime).collect();
    let own = thread.lifetime_ns.as_f64();
    if lifetimes.iter().sum::<f64>() < WORKED * own
        || served_ns(evidence, group, late.thread) > SERVES * own
        || !evidence.is_material(saves_ns)
    {
        return None;
    }
    let joins = match late.is_process {
        true => of_parent(evidence, late)?,
        false => joins(evidence, late.thread)?,
    };
    if joins.max_ns() < AWAITED * saves_ns {
        return None;
    }
    let kind = FindingKind::LastToEnd {
        lifetime_ns: thread.lifetime_ns,
        median_ns: Ns::from_f64(median(&mut lifetimes)),
        of_threads: late.others.len() + 1,
    };
    let finding = evidence.finding(group, vec![late.thread], None, saves_ns, kind);
    Some(Finding { blame: joins.blame(), ..finding })
}

/// How long a thread waits for what others do, or for something to happen.
fn served_ns(evidence: &Evidence<'_>, group: u32, thread: u32) -> f64 {
    let is_service = |row: &&CauseRow| {
        let accepts = row
            .api
            .is_some_and(|api| evidence.analysis.apis[api as usize].symbol.starts_with("accept"));
        let awaits = matches!(
            row.purpose,
            Purpose::Readiness | Purpose::Completion | Purpose::Join | Purpose::Child
        );
        accepts || awaits || row.purpose.is_handover()
    };
    let rows = evidence.causes_of(group).filter(is_service).flat_map(|row| &row.by_thread);
    rows.filter(|span| span.thread == thread).map(|span| span.ns.as_f64()).sum()
}

/// Whether the last of a group's threads has waited for locks for so much longer than the usual one that it is late by that.
pub(super) fn is_late_by_locks(evidence: &Evidence<'_>, finding: &Finding) -> bool {
    let rows = evidence.causes_of(finding.group).filter(|row| row.purpose.is_lock());
    let waits = rows.collect::<Joint<'_>>().by_thread();
    let of = |thread: &u32| waits.iter().find(|wait| wait.1 == *thread).map_or(0.0, |wait| wait.0);
    let members = &evidence.groups.rows[finding.group as usize].members;
    let mut all: Vec<f64> = members.iter().map(of).collect();
    let own = finding.threads.first().map_or(0.0, of);
    own - median(&mut all) >= BY_LOCKS * finding.saves_ns.as_f64()
}

/// The waits of the creator of a thread that this one ended, if there are such.
pub(super) fn joins<'a>(evidence: &Evidence<'a>, last: u32) -> Option<Joint<'a>> {
    let thread = &evidence.analysis.threads[last as usize];
    let creator = thread.creator?;
    let mut all = (0..).zip(&evidence.analysis.threads);
    let (creator, _) =
        all.find(|(_, row)| row.process == thread.process && row.thread == creator)?;
    let its_group = *evidence.groups.of_thread.get(creator as usize)?;
    let ended = |row: &&CauseRow| {
        let mut wakers = row.wakers.iter().flat_map(|waker| &waker.by_thread);
        (row.purpose == Purpose::Join || row.purpose.is_handover())
            && row.by_thread.iter().any(|span| span.thread == creator)
            && wakers.any(|span| span.thread == last)
    };
    Some(evidence.causes_of(its_group).filter(ended).collect())
}

/// The waits of the thread of a parent that waits longest for this child.
fn of_parent<'a>(evidence: &Evidence<'a>, late: &LateThread) -> Option<Joint<'a>> {
    let threads = &evidence.analysis.threads;
    let parent = forked_by(evidence.analysis, &threads[late.thread as usize])?;
    let is_wait = |row: &&CauseRow| {
        let is_end = matches!(row.purpose, Purpose::Join | Purpose::Child | Purpose::Readiness);
        let mut wakers = row.wakers.iter().flat_map(|waker| &waker.by_thread);
        (is_end || row.purpose.is_handover()) && wakers.any(|span| span.thread == late.thread)
    };
    let by = |row: &CauseRow| {
        let mut own = row.by_thread.iter();
        own.find(|span| threads[span.thread as usize].process == parent).map(|span| span.thread)
    };
    let rows = || evidence.watched.causes.iter().filter(is_wait);
    let longest = rows().filter(|row| by(row).is_some()).max_by_key(|row| row.max_ns)?;
    let thread = by(longest)?;
    let of_it = |row: &&CauseRow| row.by_thread.iter().any(|span| span.thread == thread);
    Some(rows().filter(of_it).collect())
}
