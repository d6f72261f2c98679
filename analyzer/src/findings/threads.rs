//! Threads that differ from others of their group.

use std::collections::HashMap;

use super::calls::Explained;
use super::joint::Joint;
use super::{Evidence, Finding, FindingKind, SubGroupSummary};
use crate::blocking::Cause;
use crate::causes::{CauseRow, Purpose};
use crate::clock::Ns;
use crate::groups::{GroupRow, Outlier, OutlierApi, Why};
use crate::rows::ThreadRow;
use crate::spans::common_ns;
use crate::stats::median;

/// A thread is slow from this multiple of the median useful time: POP considers a load balance of 0.8 and more good,
/// which is 1 / 1.25.
const SLOW: f64 = 1.25;
/// Slow threads whose saving is a smaller share of the largest one are not listed.
const NAMED: f64 = 0.1;
/// At least this share of the excess in an API must show in the thread's time: a thread that does less of something
/// else instead is not slow.
const SHOWS: f64 = 0.5;
/// A thread that waits for others during more of its life than this delays nobody.
const WAITING: f64 = 0.5;
/// Others have nothing to do for at least this share of a slow thread's excess. It is a straggler if they wait at a barrier so long.
const AWAITED: f64 = 0.5;
/// A behaviour of threads that together live less than this share of the lifetime of their group tells nothing about the group.
const BEHAVIOUR: f64 = 0.05;

/// If the scheduler was not observed, other threads may have run while one seems to be in its own code: less than
/// this share of the wall time is no finding.
const OWN_CODE: f64 = 0.2;

/// A slow outlier.
struct Slow<'a> {
    outlier: &'a Outlier,
    api: &'a OutlierApi,
    saves_ns: f64,
}

pub(super) fn slow(
    evidence: &Evidence<'_>,
    explained: &Explained,
    (number, group): (u32, &GroupRow),
) -> Vec<Finding> {
    let mut slow: Vec<Slow<'_>> =
        group.outliers.iter().filter_map(|o| is_slow(evidence, explained, o)).collect();
    slow.sort_by(|a, b| b.saves_ns.total_cmp(&a.saves_ns));
    let mut found = Vec::new();
    // Make one finding for each API that makes threads slow.
    while let Some(first) = slow.first() {
        let api = first.api.api;
        let (same, rest): (Vec<_>, Vec<_>) = slow.into_iter().partition(|s| s.api.api == api);
        slow = rest;
        let most = &same[0];
        let named = same.iter().filter(|slow| slow.saves_ns >= NAMED * most.saves_ns);
        let threads: Vec<u32> = named.map(|slow| slow.outlier.thread).collect();
        if !evidence.is_material_to(most.outlier.thread, most.saves_ns)
            || may_be_preempted(evidence, most, same.len())
            || !others_have_time(evidence, (number, group), most)
        {
            continue;
        }
        let kind = straggler(evidence, group, most).unwrap_or_else(|| FindingKind::SlowThreads {
            useful_ns: most.api.useful_ns,
            median_ns: most.api.median_ns,
            score: most.api.score,
            of_threads: group.threads,
            excess_ns: Ns::from_f64(same.iter().map(|slow| slow.saves_ns).sum()),
            as_rates: group.as_rates,
            why: why(most.api),
        });
        let barriers = || evidence.causes_of(number).filter(|row| row.purpose == Purpose::Barrier);
        let blame = match kind {
            FindingKind::BarrierStraggler { .. } => barriers().collect::<Joint<'_>>().blame(),
            // Where its creator waits for it.
            _ => super::ends::joins(evidence, most.outlier.thread)
                .filter(|joins| joins.max_ns() >= AWAITED * most.saves_ns)
                .and_then(|joins| joins.blame()),
        };
        let finding = evidence.finding(number, threads, api, most.saves_ns, kind);
        found.push(Finding { blame, ..finding });
    }
    found
}

/// Whether the others have nothing to do while a thread does more: they wait, or have ended. If they only wait for a processor, it had
/// more of the work because it had more of the processors, and nobody ends later for it. Nor does who only waits for a processor when
/// the others have ended. And who waits in its own code for memory, and not in a system call, has something to do. Threads that are
/// compared by rates are so here, too.
fn others_have_time(
    evidence: &Evidence<'_>,
    (number, group): (u32, &GroupRow),
    slow: &Slow<'_>,
) -> bool {
    let own = &evidence.analysis.threads[slow.outlier.thread as usize];
    let end_ns = own.end_ns.0;
    let times = evidence.watched.times.as_ref();
    let times = times.and_then(|times| times.get(slow.outlier.thread as usize));
    let ready = times.map_or_else(Vec::new, |own| own.without_processor());
    let is_wait =
        |row: &&CauseRow| !matches!(row.purpose, Purpose::Page | Purpose::Stopped | Purpose::Other);
    let in_own_code = evidence.causes_of(number).filter(|row| row.api.is_none()).filter(is_wait);
    let in_own_code: Joint<'_> = in_own_code.collect();
    let in_own_code: HashMap<u32, f64> =
        in_own_code.by_thread().into_iter().map(|(ns, thread)| (thread, ns)).collect();
    let idle = |&thread: &u32| {
        let row = &evidence.analysis.threads[thread as usize];
        let known_ns = in_own_code.get(&thread).copied().unwrap_or_default();
        let memory_ns = (row.outside_wait_ns().unwrap_or_default().as_f64() - known_ns).max(0.0);
        let blocked_ns = row.off_cpu.blocked_ns?.as_f64() - memory_ns;
        let after_ns = end_ns.saturating_sub(row.end_ns.0);
        let ran_ns = after_ns.saturating_sub(common_ns(&ready, (row.end_ns.0, end_ns)));
        let rate = match group.as_rates {
            true => own.lifetime_ns.as_f64() / row.lifetime_ns.as_f64().max(1.0),
            false => 1.0,
        };
        Some(rate * (blocked_ns + ran_ns as f64))
    };
    let idle: Option<Vec<f64>> = group.members.iter().map(idle).collect();
    idle.is_none_or(|mut idle| median(&mut idle) >= AWAITED * slow.saves_ns)
}

/// What distinguishes the calls of a slow thread, if most of the others make such calls, too.
fn why(api: &OutlierApi) -> Option<Why> {
    api.why.filter(|_| api.median_ns > Ns(0))
}

/// Whether threads that seem slow in their own code may in truth have had no processor, which nobody observed: if the
/// excess is small; or if several threads have one, and the most conspicuous has run for less than that in all its life.
/// (One alone may wait in its code by a system call of its own. If the processors are busy, many are held up.) A fork's child has
/// no processor at first, and is a shell's mostly, which has other work for each: of these, one alone is not believed either, nor
/// one whose processor time is not known, since another program took its place.
fn may_be_preempted(evidence: &Evidence<'_>, most: &Slow<'_>, slow_threads: usize) -> bool {
    let thread = &evidence.analysis.threads[most.outlier.thread as usize];
    let is_fork = evidence.analysis.processes[thread.process].forked;
    let has_hardly_run = thread.on_cpu_ns.map_or(is_fork, |ran| ran.as_f64() < most.saves_ns);
    most.api.api.is_none()
        && thread.application_preempted_ns.is_none()
        && (most.saves_ns < OWN_CODE * evidence.analysis.wall_ns.as_f64()
            || (slow_threads > 1 || is_fork) && has_hardly_run)
}

fn is_slow<'a>(
    evidence: &Evidence<'_>,
    explained: &Explained,
    outlier: &'a Outlier,
) -> Option<Slow<'a>> {
    let thread = &evidence.analysis.threads[outlier.thread as usize];
    let more = outlier.useful_ns.as_f64() - outlier.median_ns.as_f64();
    let beyond =
        |api: &OutlierApi| api.excess_ns as f64 - explained.excess_ns(outlier.thread, api.api);
    let left = |api: &&OutlierApi| api.excess_ns > 0 && beyond(api) >= SHOWS * api.excess_ns as f64;
    let api = outlier.apis.iter().find(left)?;
    let saves_ns = outlier.apis.iter().filter(left).map(|api| api.excess_ns as f64).sum::<f64>();
    let slow = outlier.useful_ns.as_f64() >= SLOW * outlier.median_ns.as_f64()
        && saves_ns >= (SLOW - 1.0) * outlier.median_ns.as_f64()
        && more >= SHOWS * saves_ns
        && waits_for_others(evidence, thread) < WAITING * thread.lifetime_ns.as_f64();
    slow.then_some(Slow { outlier, api, saves_ns })
}

/// Returns the waits for other threads: all except sleep, and those only known from the scheduler.
fn waits_for_others(evidence: &Evidence<'_>, thread: &ThreadRow) -> f64 {
    wait_of(evidence, thread, |cause| !matches!(cause, Cause::Sleep | Cause::Other))
}

fn wait_of(evidence: &Evidence<'_>, thread: &ThreadRow, which: impl Fn(Cause) -> bool) -> f64 {
    let of_cause = thread
        .apis
        .iter()
        .filter(|api| evidence.analysis.apis[api.api as usize].waits_for.is_some_and(&which));
    of_cause.map(|api| api.wait_ns.as_f64()).sum()
}

/// Whether the others wait at barriers while a thread is slow.
fn straggler(evidence: &Evidence<'_>, group: &GroupRow, slow: &Slow<'_>) -> Option<FindingKind> {
    let at_barriers = |thread: u32| {
        let row = &evidence.analysis.threads[thread as usize];
        wait_of(evidence, row, |cause| cause == Cause::Barrier)
    };
    let own_wait_ns = at_barriers(slow.outlier.thread);
    let mut waits: Vec<f64> = group.members.iter().map(|&thread| at_barriers(thread)).collect();
    let all_wait_ns = waits.iter().sum::<f64>() - own_wait_ns;
    let median_wait_ns = median(&mut waits);
    let awaited = median_wait_ns - own_wait_ns >= AWAITED * slow.saves_ns;
    awaited.then(|| FindingKind::BarrierStraggler {
        useful_ns: slow.api.useful_ns,
        median_ns: slow.api.median_ns,
        own_wait_ns: Ns::from_f64(own_wait_ns),
        why: why(slow.api),
        median_wait_ns: Ns::from_f64(median_wait_ns),
        all_wait_ns: Ns::from_f64(all_wait_ns),
    })
}

/// Finds different behaviours. They are no loss, but important when comparing the threads. Only reported if the group
/// takes a material time, and not if all do mostly the same, some more of it than others. Threads that are over soon do something
/// else than the others, but little.
pub(super) fn sub_groups(
    evidence: &Evidence<'_>,
    (number, group): (u32, &GroupRow),
) -> Option<Finding> {
    let first = group.sub_groups.first()?;
    let lifetime = |threads: &[u32]| {
        let rows = threads.iter().map(|&thread| &evidence.analysis.threads[thread as usize]);
        rows.map(|row| row.lifetime_ns.as_f64()).sum::<f64>()
    };
    let shows = BEHAVIOUR * lifetime(&group.members);
    let showing = group.sub_groups.iter().filter(|part| lifetime(&part.members) >= shows);
    let mut leading = showing.map(|part| part.apis.first().map(|&(api, _)| api));
    let leads = leading.next()?;
    if leading.all(|api| api == leads) {
        return None;
    }
    let kind = FindingKind::SubGroups {
        parts: group
            .sub_groups
            .iter()
            .map(|part| {
                let &(api, share) = part.apis.first().unwrap_or(&(None, 0.0));
                SubGroupSummary { threads: part.members.len(), api, share }
            })
            .collect(),
        silhouette: first.silhouette,
    };
    let material = evidence.is_material(group.useful.max_ns.as_f64());
    material.then(|| evidence.finding(number, group.members.clone(), None, 0.0, kind))
}
