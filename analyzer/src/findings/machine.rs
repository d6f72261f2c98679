//! The load that the run puts on the machine as a whole: processors.

use std::collections::BTreeMap;

use super::{Evidence, Finding, FindingKind};
use crate::clock::Ns;

/// From this many ready threads per processor on average, the processors are crowded.
const CROWDED: f64 = 1.5;
/// The part of the time wanting a processor that threads have to wait for it.
const SCARCE: f64 = 0.25;
/// The part of the processors' time that threads use themselves, if they are what keeps each other from running.
const THEIR_OWN: f64 = 0.8;
/// A limit that is reached in fewer periods is no cause.
const FEW_PERIODS: u64 = 3;
/// Nor one that is reached in a smaller part of them.
const OFTEN: f64 = 0.1;

/// How much a thread wants a processor.
struct Wanting {
    thread: u32,
    on_ns: f64,
    waiting_ns: f64,
}

fn sum(all: &[Wanting], of_one: fn(&Wanting) -> f64) -> f64 {
    all.iter().map(of_one).sum()
}

/// Returns how much each of these threads wants a processor, as far as that was observed.
fn wanting(evidence: &Evidence<'_>, threads: impl Iterator<Item = u32>) -> Vec<Wanting> {
    let is_yield = |api: u32| {
        let symbol = &*evidence.analysis.apis[api as usize].symbol;
        symbol.trim_start_matches('_') == "sched_yield"
    };
    let one = |thread: u32| {
        let row = evidence.analysis.threads.get(thread as usize)?;
        // Who gives its processor to others doesn't want it back.
        let yields = row.apis.iter().filter(|one| is_yield(one.api));
        let yielded: f64 = yields.map(|one| one.preempted_ns.as_f64()).sum();
        let waiting_ns = (row.off_cpu.runnable_ns?.as_f64() - yielded).max(0.0);
        Some(Wanting { thread, on_ns: row.on_cpu_ns?.as_f64(), waiting_ns })
    };
    threads.filter_map(one).collect()
}

/// Finds why threads wait for processors: where a limit leaves them fewer than there are, that is the cause.
pub(super) fn few_processors(evidence: &Evidence<'_>) -> Option<Finding> {
    used_up_quota(evidence).or_else(|| too_many_threads(evidence))
}

/// Finds whether more threads are ready to run than there are processors, or than those that they may run on.
fn too_many_threads(evidence: &Evidence<'_>) -> Option<Finding> {
    let processors = &evidence.watched.processors;
    let machine = processors.of_machine?;
    let all = 0..evidence.analysis.threads.len() as u32;
    let fewer = processors
        .fewer()
        .into_iter()
        .map(|(set, threads)| (set.count, wanting(evidence, threads.into_iter())));
    std::iter::once((processors.count()?, wanting(evidence, all)))
        .chain(fewer)
        .filter(|(count, all)| are_crowded(evidence, *count, all))
        .max_by(|(_, a), (_, b)| sum(a, |it| it.waiting_ns).total_cmp(&sum(b, |it| it.waiting_ns)))
        .and_then(|(count, all)| {
            let (on, waiting) = (sum(&all, |it| it.on_ns), sum(&all, |it| it.waiting_ns));
            let kind = FindingKind::TooManyThreads {
                runnable: (on + waiting) / evidence.analysis.wall_ns.as_f64().max(1.0),
                processors: count,
                of_machine: machine,
                waiting_ns: Ns::from_f64(waiting),
                of_wanted: waiting / (on + waiting),
            };
            of_waiting_group(evidence, &all, 0.0, kind)
        })
}

/// Whether these threads want many more processors than there are for them.
fn are_crowded(evidence: &Evidence<'_>, processors: u64, all: &[Wanting]) -> bool {
    let (on, waiting) = (sum(all, |it| it.on_ns), sum(all, |it| it.waiting_ns));
    let runnable = (on + waiting) / evidence.analysis.wall_ns.as_f64().max(1.0);
    runnable >= CROWDED * processors as f64
        && waiting >= SCARCE * (on + waiting)
        && evidence.is_material(on)
        && own_part(evidence, processors, all) >= THEIR_OWN
}

/// The part of the processors' time that these threads have, while those live that wait for one. The rest is what others have, or nobody.
fn own_part(evidence: &Evidence<'_>, processors: u64, all: &[Wanting]) -> f64 {
    let life = |one: &Wanting| {
        let row = &evidence.analysis.threads[one.thread as usize];
        (row.start_ns, row.end_ns)
    };
    let waits = |one: &&Wanting| {
        one.waiting_ns > 0.0 && one.waiting_ns >= SCARCE * (one.on_ns + one.waiting_ns)
    };
    let lives = || all.iter().filter(waits).map(life);
    let begin = lives().map(|life| life.0).min().unwrap_or(Ns(0));
    let end = lives().map(|life| life.1).max().unwrap_or(Ns(0));
    let lived_ns = |(from, to): (Ns, Ns)| {
        let (from, to) = (from.max(begin), to.min(end));
        let ns = to.0.saturating_sub(from.0);
        Ns(ns.saturating_sub(evidence.analysis.pauses.between(from, to).0)).as_f64()
    };
    let on: f64 = all.iter().map(|one| one.on_ns.min(lived_ns(life(one)))).sum();
    on / (processors as f64 * lived_ns((begin, end))).max(1.0)
}

/// Finds whether threads wait because their control group has used up the processor time that it may use.
fn used_up_quota(evidence: &Evidence<'_>) -> Option<Finding> {
    let quota = evidence.watched.processors.quota.as_ref()?;
    if quota.spent_periods < FEW_PERIODS || quota.spent() < OFTEN {
        return None;
    }
    let everybody = || 0..evidence.analysis.threads.len() as u32;
    let seen = wanting(evidence, everybody());
    let is_seen = !seen.is_empty();
    // Without privilege, only what threads run is known. What they don't may be a wait for a processor.
    let unseen = || everybody().filter_map(|thread| not_running(evidence, thread)).collect();
    let all: Vec<Wanting> = if is_seen { seen } else { unseen() };
    let (on, waiting) = (sum(&all, |it| it.on_ns), sum(&all, |it| it.waiting_ns));
    let most = |one: &Wanting| if is_seen { one.waiting_ns } else { one.on_ns };
    let longest = all.iter().max_by(|a, b| most(a).total_cmp(&most(b)))?;
    let row = &evidence.analysis.threads[longest.thread as usize];
    // Without the limit, this one would have to wait as well, if there is more to do than the processors can.
    let lived_ns = row.lifetime_ns.as_f64();
    let machine = evidence.watched.processors.count().unwrap_or(1).max(1);
    let least_ns = (lived_ns - longest.waiting_ns).max(on / machine as f64);
    let saves_ns = (lived_ns - least_ns).min(longest.waiting_ns).min(quota.waited_ns as f64);
    if !evidence.is_material(saves_ns) {
        return None;
    }
    let kind = FindingKind::UsedUpQuota {
        processors: quota.processors,
        control_group: quota.group.clone(),
        periods: quota.periods,
        used_up_in: quota.spent_periods,
        waiting_ns: is_seen.then_some(Ns::from_f64(waiting)),
        of_wanted: is_seen.then_some(waiting / (on + waiting).max(1.0)),
    };
    if is_seen {
        return of_waiting_group(evidence, &all, saves_ns, kind);
    }
    let group = *evidence.groups.of_thread.get(longest.thread as usize)?;
    Some(evidence.finding(group, vec![longest.thread], None, saves_ns, kind))
}

/// A thread that may want a processor whenever it has none.
fn not_running(evidence: &Evidence<'_>, thread: u32) -> Option<Wanting> {
    let row = evidence.analysis.threads.get(thread as usize)?;
    let on_ns = row.on_cpu_ns?.as_f64();
    let waiting_ns = (row.lifetime_ns.as_f64() - on_ns).max(0.0);
    Some(Wanting { thread, on_ns, waiting_ns })
}

/// A finding about the group whose threads wait longest for a processor.
fn of_waiting_group(
    evidence: &Evidence<'_>,
    all: &[Wanting],
    saves_ns: f64,
    kind: FindingKind,
) -> Option<Finding> {
    let mut by_group = BTreeMap::<u32, f64>::new();
    for one in all {
        let group = *evidence.groups.of_thread.get(one.thread as usize)?;
        *by_group.entry(group).or_default() += one.waiting_ns;
    }
    let (&group, _) = by_group.iter().max_by(|a, b| a.1.total_cmp(b.1))?;
    let threads = evidence.groups.rows[group as usize].members.clone();
    Some(evidence.finding(group, threads, None, saves_ns, kind))
}
