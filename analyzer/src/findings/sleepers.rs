//! Threads that sleep for each thing that they are handed, while others wait for them.
//!
//! A thread that refreshes something now and then sleeps as often, and who paces work for others is waited for, too. What tells a
//! thread that sleeps for each item is that it has not done with the items when those that hand them over have: it still sleeps
//! for what is in the queue, and that more than once. Whoever paces others sleeps no more then, whatever else it does, and a ticker once
//! more. Where both are ended from outside, more has been handed over than the thread has slept for.
//!
//! Of several threads that each have a queue, only those are meant that others wait for.

use std::collections::{BTreeMap, BTreeSet};

use super::flows::{ANSWERS, FEW, ITEMS, is_of, working_ns};
use super::joint::Joint;
use super::stages::{WAITS_FOR_NOBODY, is_fed_by_threads};
use super::waits::{SIGNALS, STARVES};
use super::{Evidence, Finding, FindingKind};
use crate::causes::{CauseRow, PartyKind, Purpose};
use crate::clock::Ns;
use crate::groups::GroupRow;
use crate::long_waits::OffCpuTimes;
use crate::rows::ThreadRow;
use crate::spans::{Span, parts_of};

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

/// Threads of a group that sleep for what another group hands over.
struct Sleepers {
    /// The group, and its threads that are meant.
    group: u32,
    threads: Vec<u32>,
    /// How often they sleep, and how long together.
    sleeps: u64,
    slept_ns: f64,
    /// The one that sleeps longest, and how long.
    first: u32,
    first_ns: f64,
}

impl Sleepers {
    /// The part of waits of the group that is theirs.
    fn part_of(&self, row: &CauseRow) -> f64 {
        let own = row.by_thread.iter().filter(|span| self.threads.contains(&span.thread));
        let ns: f64 = own.map(|span| span.ns.as_f64()).sum();
        ns / row.wait_ns.as_f64().max(1.0)
    }

    fn mean_ns(&self) -> f64 {
        self.slept_ns / self.sleeps.max(1) as f64
    }
}

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
    let is_over = sleeps.ended_by(|waker| waker.kind == PartyKind::Time) >= NEARLY_ALL;
    if sleeps.waits() < ITEMS || !is_over {
        return None;
    }
    let others = (0..).zip(&evidence.groups.rows).filter(|&(other, _)| other != number);
    let found = others.filter_map(|(other, of)| {
        let sleepers = sleepers(evidence, (number, group), &sleeps, other)?;
        let givers = givers(evidence, &sleepers, &sleeps, (other, of))?;
        let saved = (givers.wait_ns + givers.sleeps_on_ns).min(sleepers.first_ns);
        Some((saved, sleepers, givers))
    });
    let (saves_ns, sleepers, givers) = found.max_by(|a, b| a.0.total_cmp(&b.0))?;
    if !evidence.is_material(saves_ns) {
        return None;
    }
    let kind = FindingKind::SleepingStage {
        sleeps: sleepers.sleeps,
        mean_ns: sleepers.mean_ns(),
        slept_ns: Ns::from_f64(sleepers.slept_ns),
        waiting: givers.group,
        all_wait_ns: Ns::from_f64(givers.all_wait_ns),
        sleeps_on_ns: Ns::from_f64(givers.sleeps_on_ns),
    };
    let blame = sleeps.blame()?;
    let finding = evidence.finding(number, sleepers.threads, blame.api, saves_ns, kind);
    Some(Finding { blame: Some(blame), ..finding })
}

/// Returns which threads of a group sleep while another group waits for them, or all of them if that waits for none; `None` if they
/// sleep too little.
fn sleepers(
    evidence: &Evidence<'_>,
    (number, group): (u32, &GroupRow),
    sleeps: &Joint<'_>,
    giver: u32,
) -> Option<Sleepers> {
    let fed = evidence.causes_of(giver).filter(|row| is_fed_by_threads(row));
    let mut awaited = fed.collect::<Joint<'_>>().waking_threads();
    awaited.retain(|span| group.members.contains(&span.thread));
    let most = awaited.first().map_or(0.0, |span| span.ns.as_f64());
    awaited.retain(|span| span.ns.as_f64() >= FEW * most);
    let is_awaited = |thread: u32| awaited.iter().any(|span| span.thread == thread);
    let (mut slept, others): (Vec<_>, Vec<_>) =
        sleeps.by_thread().into_iter().partition(|&(_, thread)| is_awaited(thread));
    let is_part = !slept.is_empty() && !others.is_empty();
    if slept.is_empty() {
        slept = others;
    }
    let &(first_ns, first) = slept.first()?;
    let slept_ns: f64 = slept.iter().map(|(ns, _)| ns).sum();
    let mut threads: Vec<u32> = slept.into_iter().map(|(_, thread)| thread).collect();
    let (sleeps, life_ns) = if is_part {
        let rows = threads.iter().map(|&thread| &evidence.analysis.threads[thread as usize]);
        let life_ns = rows.map(|row| row.lifetime_ns.as_f64()).sum();
        (sleeps_of(evidence, sleeps, &threads), life_ns)
    } else {
        threads = group.members.clone();
        (sleeps.waits(), working_ns(evidence, number, group))
    };
    let is_much = sleeps >= ITEMS && slept_ns > WAITS_FOR_NOBODY * life_ns;
    is_much.then_some(Sleepers { group: number, threads, sleeps, slept_ns, first, first_ns })
}

/// How often some threads of those that sleep do so: by their system calls.
fn sleeps_of(evidence: &Evidence<'_>, sleeps: &Joint<'_>, threads: &[u32]) -> u64 {
    let numbers: BTreeSet<u32> = sleeps.rows.iter().filter_map(|row| row.syscall).collect();
    let are_meant: BTreeSet<(u32, u32)> = threads
        .iter()
        .map(|&thread| &evidence.analysis.threads[thread as usize])
        .map(|row| (row.process as u32, row.thread))
        .collect();
    let rows = evidence.analysis.syscalls.by_thread.iter().filter(|row| {
        let thread = row.of.thread.map(|thread| (row.of.process, thread));
        numbers.contains(&row.number) && thread.is_some_and(|thread| are_meant.contains(&thread))
    });
    let calls = rows.fold(0, |sum: u64, row| sum.saturating_add(row.measures.calls));
    calls.min(sleeps.waits())
}

/// Whether a group hands something over to threads that sleep for each of these things.
fn givers(
    evidence: &Evidence<'_>,
    sleepers: &Sleepers,
    sleeps: &Joint<'_>,
    (number, group): (u32, &GroupRow),
) -> Option<Givers> {
    let (slow, times) = (sleepers.group, sleepers.sleeps as f64);
    // Who waits for what comes, or for answers, has nothing queued.
    let answers = evidence.causes_of(slow).map(|row| {
        let of_giver = row.wakers.iter().filter(|waker| is_of(number)(waker));
        let answers = of_giver.map(|waker| waker.waits).fold(0, u64::saturating_add);
        sleepers.part_of(row) * answers as f64
    });
    if answers.sum::<f64>() >= ANSWERS * times {
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
    let is_queued = (handed as f64 - times).abs() <= AS_MANY * times
        && takes(evidence, sleepers.first, sleeps, times);
    let threads: BTreeSet<u32> = match (waits, is_queued) {
        (true, _) => by_thread.keys().copied().collect(),
        (_, true) => by,
        _ => return None,
    };
    let of_threads = sleepers.threads.iter();
    let on = of_threads.map(|&one| sleeps_on(evidence, one, sleeps, &threads));
    let sleeps_on_ns = on.fold(0.0, f64::max);
    let is_behind = waits && is_behind(evidence, (slow, number), (handed as f64, times));
    let wait_ns = if waits { by_thread.values().copied().fold(0.0, f64::max) } else { 0.0 };
    let all_wait_ns = if waits { all_wait_ns } else { 0.0 };
    (sleeps_on_ns >= SLEEPS_ON * sleepers.mean_ns() || is_behind).then_some(Givers {
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

/// How long a thread sleeps on after others have handed all over: after their ends, or while they wait for its end.
fn sleeps_on(
    evidence: &Evidence<'_>,
    sleeper: u32,
    sleeps: &Joint<'_>,
    givers: &BTreeSet<u32>,
) -> f64 {
    let row = |thread: u32| -> &ThreadRow { &evidence.analysis.threads[thread as usize] };
    let life = (row(sleeper).start_ns.0, row(sleeper).end_ns.0);
    let last = givers.iter().map(|&thread| row(thread).end_ns.0).max().unwrap_or(life.1);
    let mut spans: Vec<Span> = vec![(last.clamp(life.0, life.1), life.1)];
    for &giver in givers {
        let waits = times_of(evidence, giver).into_iter().flat_map(|own| &own.waits);
        let joins =
            waits.filter(|wait| wait.wait.purpose == Purpose::Join && wait.waker == Some(sleeper));
        spans.extend(joins.map(|wait| (wait.begin_ns, wait.woken_ns.unwrap_or(wait.end_ns))));
    }
    let slept = sleeps.by_thread().into_iter().find(|&(_, thread)| thread == sleeper);
    let slept_ns = slept.map_or(0.0, |(ns, _)| ns);
    let on = |span: Span| {
        let within = Ns(span.1.saturating_sub(span.0)).as_f64();
        // Single sleeps are known from a millisecond on. But who sleeps for longer than there is time before sleeps on, too.
        let before = row(sleeper).lifetime_ns.as_f64() - within;
        slept_in(evidence, sleeper, span).max(slept_ns - before).clamp(0.0, within.max(0.0))
    };
    spans.into_iter().map(on).fold(0.0, f64::max)
}

fn times_of<'e>(evidence: &'e Evidence<'_>, thread: u32) -> Option<&'e OffCpuTimes> {
    evidence.watched.times.as_ref()?.get(thread as usize)
}

/// How long the long sleeps of a thread are in a time, if there are several: to begin with, it may have been asleep.
fn slept_in(evidence: &Evidence<'_>, thread: u32, span: Span) -> f64 {
    let waits = times_of(evidence, thread).map_or(&[][..], |own| &own.waits);
    let parts = parts_of(waits, |wait| (wait.begin_ns, wait.end_ns), span);
    let sleeps = parts.filter(|(wait, _)| wait.wait.purpose == Purpose::Sleep);
    let (count, ns) = sleeps
        .fold((0, 0), |(count, ns), (_, (from, to))| (count + 1, ns + to.saturating_sub(from)));
    if count > 1 { Ns(ns).as_f64() } else { 0.0 }
}
