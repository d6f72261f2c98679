//! Threads that others wait for: the slow stage of a pipeline, the last at a barrier, the last to end.

use std::collections::BTreeMap;

use super::crowded::uncrowded;
use super::flows::{
    OwnWaits, feeds_loop, is_flow, is_of, least_work, working_ns, works_all_the_time,
};
use super::joint::Joint;
use super::jvm;
use super::system::symbol;
use super::waits::{LEAST_SIGNALS, ONE_WAIT, STARVES};
use super::{Evidence, Finding, FindingKind, MATERIAL_SHARE};
use crate::causes::{CauseRow, PartyKind, PathWait, Purpose};
use crate::clock::Ns;
use crate::groups::GroupRow;
use crate::rows::ThreadRow;
use crate::stats::median;

/// A limiting thread waits for others during at most this part of its life.
pub(super) const WAITS_FOR_NOBODY: f64 = 0.2;
/// The same for all that it waits for, but for the disk.
const WORKS: f64 = 0.5;
/// The last at a barrier is the same thread for at least this part of the time that others wait there.
const MOSTLY_LAST: f64 = 0.6;
/// The minimum number of barriers: the last at a single one is so by chance.
const ROUNDS: u64 = 3;
/// The others end earlier than the last one by at least this part of its life.
const LATE: f64 = 0.25;
/// The consumers' waits, without one as long as the longest of each thread, must be this fraction of all its waits.
const WITHOUT_LONGEST: f64 = 0.5;
/// Threads that begin within this part of their life share work.
const TOGETHER: f64 = 0.2;

/// Threads have all processors if they run, or could, for this part of the time of these.
const ALL_OF_THEM: f64 = 0.9;

/// Finds groups that limit others.
pub(super) fn limiting(evidence: &Evidence<'_>) -> Vec<Finding> {
    let mut waiting: BTreeMap<u32, Vec<(u32, Joint<'_>)>> = BTreeMap::new();
    for (number, group) in (0..).zip(&evidence.groups.rows) {
        if jvm::is_own(evidence, group) {
            continue;
        }
        let rows: Joint<'_> =
            evidence.causes_of(number).filter(|row| may_be_limited(row)).collect();
        let wakers = rows.rows.iter().flat_map(|row| &row.wakers);
        let mut groups: Vec<u32> = wakers
            .filter(|waker| waker.kind == PartyKind::Thread)
            .filter_map(|waker| waker.group)
            .filter(|&group| group != number)
            .collect();
        groups.sort_unstable();
        groups.dedup();
        for group in groups {
            let of_group = rows.rows.iter().filter(|row| row.wakers.iter().any(is_of(group)));
            let mut joint: Joint<'_> = of_group.copied().collect();
            if !feeds_loop(evidence, group, (number, &joint)) {
                joint.rows.retain(|row| row.purpose != Purpose::Readiness);
            }
            waiting.entry(group).or_default().push((number, joint));
        }
    }
    waiting.into_iter().filter_map(|(group, by)| stage(evidence, group, by)).collect()
}

/// Returns whether this is a wait for threads of the run to hand something over, by any means.
pub(super) fn is_fed_by_threads(row: &CauseRow) -> bool {
    row.purpose.is_handover() || row.purpose == Purpose::Network && is_ended_by_threads(row)
}

/// The same, or of an event loop for any of its descriptors.
fn may_be_limited(row: &CauseRow) -> bool {
    is_fed_by_threads(row) || row.purpose == Purpose::Readiness && is_ended_by_threads(row)
}

fn is_ended_by_threads(row: &CauseRow) -> bool {
    let joint: Joint<'_> = [row].into_iter().collect();
    joint.ended_by(|waker| waker.kind == PartyKind::Thread && waker.group.is_some()) >= 0.5
}

fn stage(evidence: &Evidence<'_>, slow: u32, by: Vec<(u32, Joint<'_>)>) -> Option<Finding> {
    let part = |row: &CauseRow| {
        let ended = row.wakers.iter().filter(|waker| is_of(slow)(waker));
        let ns: f64 = ended.map(|waker| waker.wait_ns.as_f64()).sum();
        (ns / row.wait_ns.as_f64().max(1.0)).min(1.0)
    };
    // Threads that do next to nothing with what they get are there for rare events, unless they get one thing after the other.
    let limiting_ns = on_cpu_ns(evidence, &evidence.groups.rows[slow as usize]);
    let mut kept: Vec<(u32, f64, f64, Joint<'_>)> = by
        .into_iter()
        .filter_map(|(number, joint)| {
            let group = &evidence.groups.rows[number as usize];
            let lifetime = working_ns(evidence, number, group);
            let all: f64 = joint.rows.iter().map(|row| part(row) * row.wait_ns.as_f64()).sum();
            let waits = joint.by_thread_where(part);
            let longest = waits.first()?.0;
            // One wait of each thread for a start, an end or a busy machine must make no difference: threads of a pool that has
            // nothing to do wait so together.
            let rest = all - joint.max_ns() * waits.len() as f64;
            let is_even = joint.max_ns() <= ONE_WAIT * longest;
            let is_fed = joint.waits() >= LEAST_SIGNALS
                && (is_even || rest >= (STARVES * lifetime).max(WITHOUT_LONGEST * all));
            let least = least_work(evidence, slow, number);
            let works = on_cpu_ns(evidence, group) >= least * limiting_ns
                || is_flow(evidence, slow, (number, &joint), all);
            (all >= STARVES * lifetime && is_fed && works && evidence.is_material(longest))
                .then_some((number, all, longest, joint))
        })
        .collect();
    kept.sort_by(|a, b| b.2.total_cmp(&a.2));
    let group = &evidence.groups.rows[slow as usize];
    let own = OwnWaits::of_group(evidence, slow);
    let most = (WAITS_FOR_NOBODY, WORKS);
    if kept.is_empty()
        || !works_all_the_time(evidence, (slow, group), &own, most)
        || has_all_processors(evidence, group)
    {
        return None;
    }
    // What is said of it agrees with the tables, which have its waits for the ends of others, too.
    let own_wait = own.all_ns / group.lifetime_ns.as_f64().max(1.0);
    let (_, all_ns, saves_ns, joint) = &kept[0];
    let is_region = joint.rows.iter().all(|row| is_end_of_region(evidence, row));
    let saves_ns = match evidence.watched.processors.count() {
        // What some of a team still do could be shared by all.
        Some(processors) if is_region => {
            let team = (group.threads as u64 + 1).min(processors).max(1);
            &(*saves_ns * (1.0 - 1.0 / team as f64))
        }
        _ => saves_ns,
    };
    if !evidence.is_material(*saves_ns) {
        return None;
    }
    let kind = FindingKind::LimitingStage {
        is_region,
        wait_ns: Ns::from_f64(kept[0].2),
        all_wait_ns: Ns::from_f64(kept.iter().map(|(_, all, ..)| all).sum()),
        waiting: kept.iter().map(|&(number, ..)| number).collect(),
        own_wait,
        own_wait_in: own.api.filter(|_| own_wait > WAITS_FOR_NOBODY),
    };
    let mut blame = joint.blame()?;
    // A word of the runtime's tells nobody anything.
    blame.object = blame.object.filter(|_| !is_region);
    // Of what the others wait together, these are a part: waits that somebody else ended are none of it.
    blame.wait_ns = Ns::from_f64(*all_ns);
    if !blame.waker.as_ref().is_some_and(is_of(slow)) {
        let wakers = joint.rows.iter().flat_map(|row| &row.wakers);
        blame.waker = wakers.filter(|w| is_of(slow)(w)).max_by_key(|w| w.wait_ns).cloned();
    }
    let finding = evidence.finding(slow, group.members.clone(), blame.api, *saves_ns, kind);
    Some(Finding { blame: Some(blame), ..finding })
}

/// Whether a wait is one for the end of a parallel region of OpenMP, by the thread that began it and has done its own part.
fn is_end_of_region(evidence: &Evidence<'_>, row: &CauseRow) -> bool {
    symbol(evidence, row.api).starts_with("GOMP_parallel")
}

/// Whether a group has as many threads as there are processors, which hardly do anything else than run or want to: then, who waits for
/// what they do waits for work that is divided already.
fn has_all_processors(evidence: &Evidence<'_>, group: &GroupRow) -> bool {
    let Some(processors) = evidence.watched.processors.count() else { return false };
    let threads = || evidence.groups.threads(evidence.analysis, group);
    let wanted = |row: &ThreadRow| {
        let ready = row.off_cpu.runnable_ns.map_or(0.0, Ns::as_f64);
        row.on_cpu_ns.map_or(0.0, Ns::as_f64) + ready
    };
    let at_once: f64 = threads().map(wanted).sum();
    let begin = threads().map(|row| row.start_ns).min();
    let end = threads().map(|row| row.end_ns).max();
    let ns = end.zip(begin).map_or(0, |(end, begin)| end.0.saturating_sub(begin.0));
    at_once >= ALL_OF_THEM * processors as f64 * ns as f64
}

fn on_cpu_ns(evidence: &Evidence<'_>, group: &GroupRow) -> f64 {
    let threads = evidence.groups.threads(evidence.analysis, group);
    threads.filter_map(|row| row.on_cpu_ns).map(Ns::as_f64).sum()
}

/// Finds the thread that comes last to the barriers of its group.
pub(super) fn last_at_barrier(
    evidence: &Evidence<'_>,
    (number, group): (u32, &GroupRow),
) -> Option<Finding> {
    let joint: Joint<'_> =
        evidence.causes_of(number).filter(|row| row.purpose == Purpose::Barrier).collect();
    let waits = joint.by_thread();
    let last = *joint.waking_threads().first()?;
    let own = waits.iter().find(|wait| wait.1 == last.thread).map_or(0.0, |wait| wait.0);
    let others: Vec<_> = waits.iter().filter(|wait| wait.1 != last.thread).collect();
    let saves_ns = others.first()?.0;
    let is_last = last.ns.as_f64() >= MOSTLY_LAST * joint.wait_ns() && own <= LATE * saves_ns;
    let is_again = joint.waits() >= ROUNDS * others.len() as u64;
    if !is_last || !is_again || others.len() < 2 || !evidence.is_material(saves_ns) {
        return None;
    }
    let is_barrier = |wait: &PathWait| wait.purpose == Purpose::Barrier;
    if uncrowded(evidence, &[others[0].1], saves_ns, is_barrier).share() < MATERIAL_SHARE {
        return None;
    }
    let kind = FindingKind::LateAtBarrier {
        wait_ns: Ns::from_f64(saves_ns),
        all_wait_ns: Ns::from_f64(others.iter().map(|wait| wait.0).sum()),
        of_threads: group.threads,
    };
    // (The last one may wait, too: elsewhere it is not the last. These waits are not because of it.)
    let blame = joint.blame()?;
    let finding = evidence.finding(number, vec![last.thread], blame.api, saves_ns, kind);
    Some(Finding { blame: Some(blame), ..finding })
}

/// Finds the thread of a group that ends long after the others, while its creator waits for that.
pub(super) fn last_to_end(
    evidence: &Evidence<'_>,
    (number, group): (u32, &GroupRow),
) -> Option<Finding> {
    if group.members.len() < 3 || group.as_rates {
        return None;
    }
    let row = |&thread: &u32| &evidence.analysis.threads[thread as usize];
    let last = *group.members.iter().max_by_key(|&thread| row(thread).end_ns)?;
    let thread = row(&last);
    let others: Vec<_> = group.members.iter().filter(|&&other| other != last).map(row).collect();
    let together = others.iter().all(|other| {
        other.process == thread.process
            && other.creator == thread.creator
            && other.start_ns.0.abs_diff(thread.start_ns.0) as f64
                <= TOGETHER * thread.lifetime_ns.as_f64()
    });
    let next_ns = others.iter().map(|other| other.end_ns).max()?;
    let saves_ns = thread.end_ns.0.saturating_sub(next_ns.0) as f64;
    let mut lifetimes: Vec<f64> = others.iter().map(|other| other.lifetime_ns.as_f64()).collect();
    if !together || saves_ns < LATE * thread.lifetime_ns.as_f64() || !evidence.is_material(saves_ns)
    {
        return None;
    }
    // The creator waits for it.
    let creator = thread.creator?;
    let mut all = (0..).zip(&evidence.analysis.threads);
    let (creator, _) =
        all.find(|(_, row)| row.process == thread.process && row.thread == creator)?;
    let its_group = *evidence.groups.of_thread.get(creator as usize)?;
    let joins: Joint<'_> = evidence
        .causes_of(its_group)
        .filter(|row| row.by_thread.iter().any(|span| span.thread == creator))
        .filter(|row| row.purpose == Purpose::Join || row.purpose.is_handover())
        .filter(|row| {
            let mut wakers = row.wakers.iter().flat_map(|waker| &waker.by_thread);
            wakers.any(|span| span.thread == last)
        })
        .collect();
    if joins.max_ns() < saves_ns / 2.0 {
        return None;
    }
    let kind = FindingKind::LastToEnd {
        lifetime_ns: thread.lifetime_ns,
        median_ns: Ns::from_f64(median(&mut lifetimes)),
        of_threads: group.threads,
    };
    let finding = evidence.finding(number, vec![last], None, saves_ns, kind);
    Some(Finding { blame: joins.blame(), ..finding })
}
