//! What it takes until something runs: threads that are started for a piece of work each, which takes less time than to start and to end
//! them; and libraries whose constructors take long.

use std::collections::{BTreeMap, HashSet};

use super::joint::Joint;
use super::{Blame, Evidence, Finding, FindingKind};
use crate::blocking::Cause;
use crate::causes::CauseRow;
use crate::clock::Ns;
use crate::groups::GroupRow;
use crate::packed::ThreadApi;
use crate::rows::ApiRow;
use crate::slow_start::SlowStart;
use crate::stats::median;

/// Fewer threads are not many.
const MANY_THREADS: usize = 100;
/// To start a thread and to wait for its end takes at least this part of what it does: with less, the work is large enough for it.
const COSTLY: f64 = 1.0 / 3.0;
/// A wait for a thread's end that exceeds its life, in times that its creation takes. What ends a thread and wakes up who waits for it takes
/// no longer; the rest is what others had of the processor, which a pool would have to wait for, too.
const MOST_AWAITED: f64 = 4.0;
/// The part of the threads that one creator waits for by itself.
const WAITS_FOR: f64 = 0.5;

/// Finds libraries that take long before the program runs.
pub(super) fn slow_libraries(evidence: &Evidence<'_>) -> Vec<Finding> {
    let starts = (0..).zip(&evidence.watched.slow_starts);
    let found = starts.filter_map(|(number, start)| {
        let group = *evidence.groups.of_thread.get(start.thread as usize)?;
        let saves_ns = start.own_ns.as_f64() + start.calls_ns.as_f64();
        let kind = FindingKind::SlowStart {
            library: start.library,
            own_ns: start.own_ns,
            calls_ns: start.calls_ns,
            slow_start: number,
        };
        let finding = evidence.finding(group, vec![start.thread], None, saves_ns, kind);
        Some(Finding { blame: waited(evidence, group, start), ..finding })
    });
    // Of processes that run the same program, the one that takes longest.
    let mut said = HashSet::new();
    found.filter(|finding| said.insert((finding.group, library(finding)))).collect()
}

fn library(finding: &Finding) -> Option<u32> {
    match finding.kind {
        FindingKind::SlowStart { library, .. } => Some(library),
        _ => None,
    }
}

/// What the library waited for longest in the call that it was longest in.
fn waited(evidence: &Evidence<'_>, group: u32, start: &SlowStart) -> Option<Blame> {
    let (api, _) = start.longest?;
    let is_there = |row: &&CauseRow| {
        let is_own = row.site.is_some_and(|site| site.object == Some(start.library));
        is_own && row.api == Some(api) && row.by_thread.iter().any(|own| own.thread == start.thread)
    };
    let waits: Joint<'_> = evidence.causes_of(group).filter(is_there).collect();
    let blame = waits.blame()?;
    Some(Blame { holder: None, waker: None, ..blame })
}

/// What one thread costs whoever starts it, in ns.
struct Cost {
    /// The call that starts it.
    made_ns: f64,
    /// How much longer than its life its end is waited for.
    awaited_ns: f64,
}

/// The threads of a group in one process.
struct Started {
    /// The thread that started most of them.
    creator: u32,
    /// How many it started.
    by_creator: usize,
    /// How many there are.
    all: usize,
}

/// Finds whether the threads of a group are started for pieces of work that are too small for it.
pub(super) fn short_threads(
    evidence: &Evidence<'_>,
    (number, group): (u32, &GroupRow),
) -> Option<Finding> {
    let started = started(evidence, group)?;
    let (api, made_ns) = made(evidence, &started)?;
    let is_one = 2 * started.by_creator >= started.all;
    let awaited_ns = match is_one {
        true => awaited_ns(evidence, group, &started).min(MOST_AWAITED * made_ns),
        false => 0.0,
    };
    let cost = Cost { made_ns, awaited_ns };
    let each_ns = cost.made_ns + cost.awaited_ns;
    let useful_ns = useful_ns(evidence, group);
    if each_ns < COSTLY * useful_ns {
        return None;
    }
    // Where each starts some, they do that at once, on as many processors.
    let at_once =
        evidence.watched.processors.count().map_or(1, |most| most.min(group.concurrency as u64));
    let saves_ns = match is_one {
        true => each_ns * started.by_creator as f64,
        false => each_ns * started.all as f64 / at_once.max(1) as f64,
    };
    if !evidence.is_material(saves_ns) {
        return None;
    }
    let kind = FindingKind::ShortThreads {
        threads: started.all,
        lifetime_ns: group.lifetime.median_ns,
        useful_ns: Ns::from_f64(useful_ns),
        made_ns: Ns::from_f64(cost.made_ns),
        awaited_ns: Ns::from_f64(cost.awaited_ns),
    };
    Some(evidence.finding(number, vec![started.creator], Some(api), saves_ns, kind))
}

/// Whether a finding is what short-lived threads are seen to do: to have whoever starts them wait, to differ, to be slow to start now and
/// then; in Python, to have the interpreter while they start.
pub(super) fn is_of_short_threads(short: &[Finding], finding: &Finding) -> bool {
    use FindingKind as Kind;
    let held_by = finding.blame.as_ref().and_then(|blame| blame.holder.as_ref()?.group);
    let is_of = |short: &Finding| match finding.kind {
        Kind::LimitingStage { .. }
        | Kind::SubGroups { .. }
        | Kind::SlowThreads { .. }
        | Kind::LastToEnd { .. } => finding.group == short.group,
        Kind::SlowFirstCall { .. } | Kind::RareSlowCalls { .. } => {
            finding.group == short.group || finding.api == short.api
        }
        Kind::InterpreterLock { .. } => held_by == Some(short.group),
        _ => false,
    };
    short.iter().any(is_of)
}

/// Counts the threads of a group in the process that has most of them; `None` if they are few, or who started them is not known.
fn started(evidence: &Evidence<'_>, group: &GroupRow) -> Option<Started> {
    if group.members.len() < MANY_THREADS {
        return None;
    }
    let mut counts = BTreeMap::<usize, BTreeMap<u32, usize>>::new();
    for &member in &group.members {
        let row = &evidence.analysis.threads[member as usize];
        if let Some(creator) = row.creator {
            *counts.entry(row.process).or_default().entry(creator).or_default() += 1;
        }
    }
    let all = |creators: &BTreeMap<u32, usize>| creators.values().sum::<usize>();
    let (process, creators) = counts.into_iter().max_by_key(|(_, creators)| all(creators))?;
    let all = all(&creators);
    let (thread, by_creator) = creators.into_iter().max_by_key(|&(_, count)| count)?;
    let mut threads = evidence.analysis.threads.iter();
    let creator = threads.position(|row| (row.process, row.thread) == (process, thread))? as u32;
    (all >= MANY_THREADS).then_some(Started { creator, by_creator, all })
}

/// Returns the function by which they are started, and how long a call takes: no longer than the usual one, since the new thread may get the
/// processor meanwhile.
fn made(evidence: &Evidence<'_>, started: &Started) -> Option<(u32, f64)> {
    let creates = |api: &ApiRow| matches!(&*api.symbol, "pthread_create" | "thrd_create");
    let (part, api) = most_called(evidence, started.creator, creates)?;
    Some((part.api, usual_ns(&part, api)))
}

/// Returns how much longer than one of the threads lives its creator waits for it.
fn awaited_ns(evidence: &Evidence<'_>, group: &GroupRow, started: &Started) -> f64 {
    let count = started.by_creator as f64;
    let is_join = |api: &ApiRow| api.waits_for == Some(Cause::Join);
    let joins = most_called(evidence, started.creator, is_join);
    let joins = joins.filter(|(part, _)| part.calls as f64 >= WAITS_FOR * count);
    if let Some((part, api)) = &joins {
        let longer_ns = usual_ns(part, api) - group.lifetime.median_ns.as_f64();
        if longer_ns > 0.0 {
            return longer_ns;
        }
    }
    // Of several that are waited for together, only the first is: the usual wait is none. Otherwise, they tell that they are done.
    let waited_ns = joins.map_or_else(
        || ended_ns(evidence, started.creator, group),
        |(part, _)| part.total_ns.as_f64() - part.preempted_ns.as_f64(),
    );
    (waited_ns / count - group.lifetime.median_ns.as_f64()).max(0.0)
}

/// Returns what the usual thread does, without what the hook does in it when it makes its first calls: in a short life, that is much.
fn useful_ns(evidence: &Evidence<'_>, group: &GroupRow) -> f64 {
    let slow = |&member: &u32| evidence.analysis.threads[member as usize].slow_ns.as_f64();
    let mut slow: Vec<f64> = group.members.iter().map(slow).collect();
    (group.useful.median_ns.as_f64() - median(&mut slow)).max(0.0)
}

/// How long the thread waits for what threads of the group do.
fn ended_ns(evidence: &Evidence<'_>, thread: u32, group: &GroupRow) -> f64 {
    let is_member = |other: u32| group.members.binary_search(&other).is_ok();
    let rows = evidence.watched.causes.iter();
    let by_them = rows.map(|row| {
        let own = row.by_thread.iter().filter(|span| span.thread == thread);
        let own_ns: f64 = own.map(|span| span.ns.as_f64()).sum();
        let ended = row.wakers.iter().flat_map(|waker| &waker.by_thread);
        let ended = ended.filter(|span| is_member(span.thread)).map(|span| span.ns.as_f64());
        own_ns * (ended.sum::<f64>() / row.wait_ns.as_f64().max(1.0)).min(1.0)
    });
    by_them.sum()
}

/// Returns the one of some functions that a thread calls most.
fn most_called<'a>(
    evidence: &Evidence<'a>,
    thread: u32,
    wanted: impl Fn(&ApiRow) -> bool,
) -> Option<(ThreadApi, &'a ApiRow)> {
    let apis = evidence.analysis.threads[thread as usize].apis.iter();
    let known = apis.map(|part| (part, &evidence.analysis.apis[part.api as usize]));
    known.filter(|(_, api)| wanted(api)).max_by_key(|(part, _)| part.calls)
}

/// What a call of a thread usually takes: the median of all calls of the function, but no more than the thread's mean.
fn usual_ns(part: &ThreadApi, api: &ApiRow) -> f64 {
    let all_ns = part.total_ns.0.saturating_sub(part.preempted_ns.0) as f64;
    let mean_ns = all_ns / part.calls.max(1) as f64;
    api.measures.p50_ns.map_or(mean_ns, |median| median.as_f64().min(mean_ns))
}
