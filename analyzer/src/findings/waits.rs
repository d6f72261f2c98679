//! Threads that wait for others.

use super::{Evidence, Finding, FindingKind};
use crate::blocking::Cause;
use crate::clock::Ns;
use crate::groups::GroupRow;
use crate::rows::ThreadRow;

/// A lock serialises from this share of the group's lifetimes.
pub(super) const SERIALISES: f64 = 0.1;
/// Consumers starve from this share of their lifetimes.
pub(super) const STARVES: f64 = 0.3;
/// Consumers process what they get for at least this share of their lifetimes; threads that do less are there for
/// rare events.
pub(super) const CONSUMES: f64 = 0.05;
/// A producer is busy from this share of its lifetime.
const BUSY: f64 = 0.8;
/// A starved consumer waits often: a single wait that is a larger share of all is one for an end, or for a start.
pub(super) const ONE_WAIT: f64 = 0.25;
/// The producer lives for at least this part of the consumer's life.
const TOGETHER: f64 = 0.5;
/// With fewer signals, it is no producer.
pub(super) const LEAST_SIGNALS: u64 = 10;

/// Functions that wake a thread that waits for work.
pub(super) const SIGNALS: &[&str] = &[
    "pthread_cond_signal",
    "pthread_cond_broadcast",
    "cnd_signal",
    "cnd_broadcast",
    "sem_post",
    "eventfd_write",
    "write",
    "writev",
    "send",
    "sendto",
    "sendmsg",
    "mq_send",
    "msgsnd",
];

/// Whether it is a semaphore's function: that may be a lock, or count work; only the thread that posts it can tell.
fn is_semaphore(symbol: &str) -> bool {
    symbol.starts_with("sem_") || symbol.starts_with("semop") || symbol.starts_with("semtimedop")
}

/// Returns the API in which `group` waits longest, of those for which `which` is true.
fn longest_wait(
    evidence: &Evidence<'_>,
    group: &GroupRow,
    which: impl Fn(&str, Cause) -> bool,
) -> Option<(u32, f64)> {
    let wanted = group.apis.iter().filter_map(|row| {
        let api = &evidence.analysis.apis[row.api? as usize];
        let wanted = api.waits_for.is_some_and(|cause| which(&api.symbol, cause));
        wanted.then_some((row.api?, row.wait_ns.as_f64()))
    });
    wanted.max_by(|a, b| a.1.total_cmp(&b.1)).filter(|&(_, wait)| wait > 0.0)
}

/// Sorts threads by their wait, longest first, and drops those that hardly waited.
fn by_wait(mut waits: Vec<(f64, u32)>) -> (Vec<u32>, f64) {
    waits.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    let max = waits.first().map_or(0.0, |wait| wait.0);
    (named(waits), max)
}

/// The same for waits that are sorted.
pub(super) fn named(waits: Vec<(f64, u32)>) -> Vec<u32> {
    const NAMED: f64 = 0.1;
    let max = waits.first().map_or(0.0, |wait| wait.0);
    waits.into_iter().filter(|wait| wait.0 >= NAMED * max).map(|wait| wait.1).collect()
}

pub(super) fn lock(evidence: &Evidence<'_>, (number, group): (u32, &GroupRow)) -> Option<Finding> {
    let is_lock = |symbol: &str, cause| cause == Cause::Lock && !is_semaphore(symbol);
    let (api, all_wait_ns) = longest_wait(evidence, group, is_lock)?;
    let (threads, saves_ns) = by_wait(evidence.waits_in(group, api));
    let of_lifetime = all_wait_ns / group.lifetime_ns.as_f64().max(1.0);
    if of_lifetime < SERIALISES || !evidence.is_material(saves_ns) {
        return None;
    }
    let kind = FindingKind::SerialisingLock {
        wait_ns: Ns::from_f64(saves_ns),
        all_wait_ns: Ns::from_f64(all_wait_ns),
        of_lifetime,
        inside: inside(evidence, group, api),
        others: Vec::new(),
    };
    Some(evidence.finding(number, threads, Some(api), saves_ns, kind))
}

/// Returns the library call in which the group calls `api` for longest, unless that is its own code.
pub(super) fn inside(evidence: &Evidence<'_>, group: &GroupRow, api: u32) -> Option<u32> {
    let contexts = &evidence.analysis.contexts;
    let mut by_caller = std::collections::BTreeMap::<Option<u32>, u64>::new();
    for &thread in &group.members {
        for part in &evidence.analysis.threads[thread as usize].contexts {
            let row = &contexts[part.context as usize];
            if row.api == api {
                let caller = row.parent.map(|parent| contexts[parent as usize].api);
                let sum = by_caller.entry(caller).or_default();
                *sum = sum.saturating_add(part.self_ns.0);
            }
        }
    }
    by_caller.into_iter().max_by_key(|&(_, ns)| ns).and_then(|(caller, _)| caller)
}

pub(super) fn starved(
    evidence: &Evidence<'_>,
    (number, group): (u32, &GroupRow),
) -> Option<Finding> {
    let is_empty =
        |symbol: &str, cause| matches!(cause, Cause::Condition | Cause::Io) || is_semaphore(symbol);
    let (api, all_wait_ns) = longest_wait(evidence, group, is_empty)?;
    let (threads, saves_ns) = by_wait(evidence.waits_in(group, api));
    let lifetime_ns = group.lifetime_ns.as_f64().max(1.0);
    let of_lifetime = all_wait_ns / lifetime_ns;
    if of_lifetime < STARVES
        || group.useful_ns.as_f64() < CONSUMES * lifetime_ns
        || !evidence.is_material(saves_ns)
    {
        return None;
    }
    let mut tails = evidence.tails.rows.iter();
    let tail = tails.find(|row| row.group == number && row.api == api);
    if tail.is_some_and(|row| row.max_ns.as_f64() > ONE_WAIT * saves_ns) {
        return None;
    }
    let consumer = &evidence.analysis.threads[*threads.first()? as usize];
    let (producer, producer_busy, signals) = producer(evidence, number, consumer)?;
    let kind = FindingKind::StarvedConsumers {
        wait_ns: Ns::from_f64(saves_ns),
        all_wait_ns: Ns::from_f64(all_wait_ns),
        of_lifetime,
        producer,
        producer_busy,
        signals,
    };
    Some(evidence.finding(number, threads, Some(api), saves_ns, kind))
}

/// Returns the busy thread of the same process, but of another group, that signals most.
fn producer(
    evidence: &Evidence<'_>,
    consumers: u32,
    consumer: &ThreadRow,
) -> Option<(u32, f64, u64)> {
    let threads = (0..).zip(&evidence.analysis.threads);
    let others = threads.filter(|&(number, row)| {
        row.process == consumer.process && evidence.groups.of_thread[number as usize] != consumers
    });
    let busy = others.filter_map(|(number, row)| {
        let joins = joins_ns(evidence, row);
        // Waiting for the end of the consumers is not part of producing.
        let alive = row.lifetime_ns.as_f64() - joins;
        let useful = row.application_ns.as_f64() + row.measures.self_ns.as_f64()
            - row.measures.wait_ns.as_f64();
        let busy = if alive > 0.0 { useful / alive } else { 0.0 };
        let signals = signals(evidence, row);
        let (begin, end) = (row.start_ns.max(consumer.start_ns), row.end_ns.min(consumer.end_ns));
        let together = end.0.saturating_sub(begin.0) as f64;
        let is_there = together >= TOGETHER * consumer.lifetime_ns.as_f64();
        (busy >= BUSY && signals >= LEAST_SIGNALS && is_there).then_some((number, busy, signals))
    });
    busy.max_by_key(|&(_, _, signals)| signals)
}

fn joins_ns(evidence: &Evidence<'_>, row: &ThreadRow) -> f64 {
    let joins = row
        .apis
        .iter()
        .filter(|api| evidence.analysis.apis[api.api as usize].waits_for == Some(Cause::Join));
    joins.map(|api| api.wait_ns.as_f64()).sum()
}

fn signals(evidence: &Evidence<'_>, row: &ThreadRow) -> u64 {
    let signals = row.apis.iter().filter(|api| {
        let symbol = evidence.analysis.apis[api.api as usize].symbol.trim_start_matches('_');
        SIGNALS.contains(&symbol)
    });
    signals.fold(0, |sum: u64, api| sum.saturating_add(api.calls))
}
