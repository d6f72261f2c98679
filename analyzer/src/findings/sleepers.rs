//! Threads that sleep for each thing that they are handed, while others wait for them.
//!
//! A thread that refreshes something now and then sleeps as often, and who paces work for others is waited for, too. What tells a
//! thread that sleeps for each item is that it has not done with the items when those that hand them over have: it still sleeps
//! for what is in the queue, and that more than once. Whoever paces others ends first, and a ticker within one more sleep. Where both
//! are ended from outside, more has been handed over than the thread has slept for.

use std::collections::{BTreeMap, BTreeSet};

use super::flows::{ANSWERS, ITEMS, is_of, working_ns};
use super::joint::Joint;
use super::stages::{WAITS_FOR_NOBODY, is_fed_by_threads};
use super::waits::{SIGNALS, STARVES};
use super::{Evidence, Finding, FindingKind};
use crate::causes::{PartyKind, Purpose};
use crate::clock::Ns;
use crate::groups::GroupRow;
use crate::rows::ThreadRow;

/// The part of the sleeps that end because the time is over.
const NEARLY_ALL: f64 = 0.9;
/// For each sleep, so many waits of those that hand something over end, or each of so many things that they hand over has a sleep.
const EACH: f64 = 0.5;
/// Sleeps, and things that are handed over, are as many, but for this part.
const AS_MANY: f64 = 0.1;
/// It sleeps on for more than one sleep, after all is handed over.
const SLEEPS_ON: f64 = 1.5;

/// `condition_variable::notify_one` and `notify_all`.
const NOTIFIES: &[&str] =
    &["ZNSt18condition_variable10notify_oneEv", "ZNSt18condition_variable10notify_allEv"];

/// Those that hand something over to a thread that sleeps.
struct Givers {
    group: u32,
    /// How long all of them wait for it, and the one that waits longest.
    all_wait_ns: f64,
    wait_ns: f64,
    /// How long it sleeps on after they have handed all over.
    sleeps_on_ns: f64,
}

/// Finds threads that sleep for each item.
pub(super) fn sleeping(evidence: &Evidence<'_>) -> Vec<Finding> {
    let groups = (0..).zip(&evidence.groups.rows);
    groups.filter_map(|(number, group)| stage(evidence, number, group)).collect()
}

fn stage(evidence: &Evidence<'_>, number: u32, group: &GroupRow) -> Option<Finding> {
    let rows = evidence.causes_of(number).filter(|row| row.purpose == Purpose::Sleep);
    let sleeps: Joint<'_> = rows.collect();
    let (slept_ns, thread) = *sleeps.by_thread().first()?;
    let is_over = sleeps.ended_by(|waker| waker.kind == PartyKind::Time) >= NEARLY_ALL;
    let is_much = sleeps.wait_ns() > WAITS_FOR_NOBODY * working_ns(evidence, number, group);
    if sleeps.waits() < ITEMS || !is_over || !is_much {
        return None;
    }
    let others = (0..).zip(&evidence.groups.rows).filter(|&(other, _)| other != number);
    let givers: Vec<Givers> =
        others.filter_map(|other| givers(evidence, (number, thread), &sleeps, other)).collect();
    let saved = |givers: &Givers| (givers.wait_ns + givers.sleeps_on_ns).min(slept_ns);
    let first = givers.iter().max_by(|a, b| saved(a).total_cmp(&saved(b)))?;
    let saves_ns = saved(first);
    if !evidence.is_material(saves_ns) {
        return None;
    }
    let kind = FindingKind::SleepingStage {
        sleeps: sleeps.waits(),
        mean_ns: sleeps.wait_ns() / sleeps.waits() as f64,
        slept_ns: Ns::from_f64(sleeps.wait_ns()),
        waiting: first.group,
        all_wait_ns: Ns::from_f64(first.all_wait_ns),
        sleeps_on_ns: Ns::from_f64(first.sleeps_on_ns),
    };
    let blame = sleeps.blame()?;
    let finding = evidence.finding(number, group.members.clone(), blame.api, saves_ns, kind);
    Some(Finding { blame: Some(blame), ..finding })
}

/// Whether a group hands something over to a thread that sleeps for each of these things.
fn givers(
    evidence: &Evidence<'_>,
    (slow, sleeper): (u32, u32),
    sleeps: &Joint<'_>,
    (number, group): (u32, &GroupRow),
) -> Option<Givers> {
    let times = sleeps.waits() as f64;
    // Who waits for what comes, or for answers, has nothing queued.
    let answers = evidence.causes_of(slow).flat_map(|row| &row.wakers).filter(|w| is_of(number)(w));
    let answers: u64 = answers.map(|waker| waker.waits).fold(0, u64::saturating_add);
    if answers as f64 >= ANSWERS * times {
        return None;
    }
    // How often, and how long, they wait for room.
    let fed = || evidence.causes_of(number).filter(|row| is_fed_by_threads(row));
    let ended = || fed().flat_map(|row| &row.wakers).filter(|waker| is_of(slow)(waker));
    let room: u64 = ended().map(|waker| waker.waits).fold(0, u64::saturating_add);
    let all_wait_ns: f64 = ended().map(|waker| waker.wait_ns.as_f64()).sum();
    let mut by_thread: BTreeMap<u32, f64> = BTreeMap::new();
    for row in fed().filter(|row| row.wakers.iter().any(is_of(slow))) {
        let of_slow = row.wakers.iter().filter(|waker| is_of(slow)(waker));
        let ns: f64 = of_slow.map(|waker| waker.wait_ns.as_f64()).sum();
        let part = (ns / row.wait_ns.as_f64().max(1.0)).min(1.0);
        for span in &row.by_thread {
            *by_thread.entry(span.thread).or_default() += part * span.ns.as_f64();
        }
    }
    let waits =
        room as f64 >= EACH * times && all_wait_ns >= STARVES * working_ns(evidence, number, group);
    let (handed, by) = handed_over(evidence, group);
    let is_queued =
        (handed as f64 - times).abs() <= AS_MANY * times && takes(evidence, sleeper, sleeps, times);
    let threads: BTreeSet<u32> = match (waits, is_queued) {
        (true, _) => by_thread.keys().copied().collect(),
        (_, true) => by,
        _ => return None,
    };
    let sleeps_on_ns = sleeps_on(evidence, (slow, sleeper), number, &threads);
    let mean_ns = sleeps.wait_ns() / times;
    let is_behind = waits && is_behind(evidence, (slow, number), (handed as f64, times));
    let wait_ns = if waits { by_thread.values().copied().fold(0.0, f64::max) } else { 0.0 };
    let all_wait_ns = if waits { all_wait_ns } else { 0.0 };
    (sleeps_on_ns >= SLEEPS_ON * mean_ns || is_behind).then_some(Givers {
        group: number,
        all_wait_ns,
        wait_ns,
        sleeps_on_ns,
    })
}

/// Whether a group has handed over more than the other one has slept for when both are ended, as in a server that is killed: then
/// something is left in the queue. Nobody else must wait for what it hands over.
fn is_behind(
    evidence: &Evidence<'_>,
    (slow, giver): (u32, u32),
    (handed, times): (f64, f64),
) -> bool {
    let others = evidence.watched.causes.iter();
    let others = others.filter(|row| row.group != slow && is_fed_by_threads(row));
    let wakers = others.flat_map(|row| &row.wakers).filter(|waker| is_of(giver)(waker));
    let of_others = wakers.map(|waker| waker.waits).fold(0, u64::saturating_add);
    let left = handed - times;
    (SLEEPS_ON..=AS_MANY * times).contains(&left) && (of_others as f64) < ANSWERS * left
}

fn symbol<'e>(evidence: &Evidence<'e>, api: u32) -> &'e str {
    evidence.analysis.apis[api as usize].symbol.trim_start_matches('_')
}

/// How many things a group hands over, by the function that does so most often, and which threads do that.
fn handed_over(evidence: &Evidence<'_>, group: &GroupRow) -> (u64, BTreeSet<u32>) {
    let mut sums: BTreeMap<u32, (u64, BTreeSet<u32>)> = BTreeMap::new();
    for &thread in &group.members {
        for row in &evidence.analysis.threads[thread as usize].apis {
            let name = symbol(evidence, row.api);
            if row.calls > 0 && (SIGNALS.contains(&name) || NOTIFIES.contains(&name)) {
                let sum = sums.entry(row.api).or_default();
                sum.0 = sum.0.saturating_add(row.calls);
                sum.1.insert(thread);
            }
        }
    }
    sums.into_values().max_by_key(|&(calls, _)| calls).unwrap_or_default()
}

/// Whether a thread calls something else for each of its sleeps: to take what it sleeps for, which others may add to meanwhile.
fn takes(evidence: &Evidence<'_>, thread: u32, sleeps: &Joint<'_>, times: f64) -> bool {
    let is_sleep = |api: u32| sleeps.rows.iter().any(|row| row.api == Some(api));
    let mut apis = evidence.analysis.threads[thread as usize].apis.iter();
    apis.any(|row| !is_sleep(row.api) && row.calls as f64 >= (1.0 - AS_MANY) * times)
}

/// How long a thread sleeps on after others have handed all over: until it ends after they do, or while they wait for its end.
fn sleeps_on(
    evidence: &Evidence<'_>,
    (slow, sleeper): (u32, u32),
    group: u32,
    threads: &BTreeSet<u32>,
) -> f64 {
    let row = |thread: u32| -> &ThreadRow { &evidence.analysis.threads[thread as usize] };
    let last = threads.iter().map(|&thread| row(thread).end_ns).max();
    let after = last.map_or(0, |last| row(sleeper).end_ns.0.saturating_sub(last.0));
    let joins = evidence.causes_of(group).filter(|row| row.purpose == Purpose::Join);
    let joins = joins.filter(|row| {
        row.wakers.iter().any(is_of(slow))
            && row.by_thread.iter().any(|span| threads.contains(&span.thread))
    });
    let joined = joins.map(|row| row.max_ns.as_f64()).fold(0.0, f64::max);
    joined.max(Ns(after).as_f64())
}
