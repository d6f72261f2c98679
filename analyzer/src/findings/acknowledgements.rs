//! Messages that are sent in pieces, and wait for an acknowledgement in between.
//!
//! A small piece is held back while an earlier one is not acknowledged (Nagle's algorithm), and who receives that one does not acknowledge
//! it at once, since an answer may come that carries the acknowledgement. Where the answer needs the second piece, both wait for the
//! receiver's timer: 40 ms in Linux. So there are waits of that length, again and again, which no thread ends, on a connection to which
//! about two pieces are sent for each.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use super::joint::Joint;
use super::system::{by_thread, symbol};
use super::{Evidence, Finding, FindingKind};
use crate::causes::{CauseRow, ends};
use crate::clock::Ns;
use crate::stats::median;

/// The timer is 40 ms; it goes off up to some ticks of the kernel later.
const DELAYED_NS: RangeInclusive<u64> = 38_000_000..=52_000_000;
/// The median is nearer.
const MEDIAN_NS: RangeInclusive<f64> = 39e6..=48e6;
/// Fewer such waits may be a coincidence.
const MANY: usize = 10;
/// They are at least this part of the time of the long waits on the connection.
const MOST: f64 = 0.5;
/// Pieces that are sent for each of them, at least.
const PIECES: f64 = 1.5;
/// `write`, `writev`, `sendto`, `sendmsg`, `sendmmsg`.
const SENDS: &[u32] = &[1, 20, 44, 46, 307];
const SENDERS: &[&str] = &["write", "writev", "send", "sendto", "sendmsg", "sendmmsg"];

/// Waits that a thread has on a connection.
#[derive(Default)]
struct Waits {
    delayed: Vec<f64>,
    all_ns: f64,
}

/// Finds connections that wait for delayed acknowledgements.
pub(super) fn delayed(evidence: &Evidence<'_>) -> Vec<Finding> {
    let Some(times) = &evidence.watched.times else { return Vec::new() };
    let mut connections: BTreeMap<(u32, (&str, &str)), Waits> = BTreeMap::new();
    for (thread, own) in (0..).zip(times) {
        for wait in &own.waits {
            let Some(ends) = ends(&wait.wait.object) else { continue };
            let waits = connections.entry((thread, ends)).or_default();
            // (When it was woken by an interrupt is seen, too; whatever it waits for after that is a processor.)
            let woken = wait.woken_ns.unwrap_or(wait.end_ns);
            let ns = woken.saturating_sub(wait.begin_ns);
            waits.all_ns += Ns(ns).as_f64();
            if wait.waker.is_none() && DELAYED_NS.contains(&ns) {
                waits.delayed.push(Ns(ns).as_f64());
            }
        }
    }
    let found = connections.into_iter().filter_map(|((thread, ends), waits)| {
        let delayed_ns: f64 = waits.delayed.iter().sum();
        (waits.delayed.len() >= MANY && delayed_ns >= MOST * waits.all_ns)
            .then(|| connection(evidence, thread, ends, waits.delayed))
            .flatten()
    });
    let mut of_groups: BTreeMap<u32, Finding> = BTreeMap::new();
    for finding in found {
        let longest = of_groups.get(&finding.group).map_or(Ns(0), |known| known.saves_ns);
        if finding.saves_ns > longest {
            of_groups.insert(finding.group, finding);
        }
    }
    of_groups.into_values().collect()
}

/// Says who sends in pieces: the other end, if that is in the run; otherwise the thread that waits.
fn connection(
    evidence: &Evidence<'_>,
    thread: u32,
    (own, other): (&str, &str),
    mut delayed: Vec<f64>,
) -> Option<Finding> {
    let waits = |ends_of: (&str, &str)| -> Joint<'_> {
        let rows = evidence.each_cause();
        rows.filter(|row: &&CauseRow| ends(&row.object) == Some(ends_of)).collect()
    };
    let of_sender = match waits((other, own)) {
        there if !there.rows.is_empty() => there,
        _ => waits((own, other)).rows.into_iter().filter(|row| has(row, thread)).collect(),
    };
    let (waits_ns, sender) = *of_sender.by_thread().first()?;
    let sends = by_thread(evidence, SENDS).into_iter().find(|sent| sent.1 == sender)?.2;
    let (count, all_ns) = (delayed.len(), delayed.iter().sum::<f64>());
    let median_ns = median(&mut delayed);
    let saves_ns = all_ns.min(waits_ns);
    if (sends as f64) < PIECES * count as f64
        || !MEDIAN_NS.contains(&median_ns)
        || !evidence.is_material(saves_ns)
    {
        return None;
    }
    let group = *evidence.groups.of_thread.get(sender as usize)?;
    let apis = &evidence.analysis.threads[sender as usize].apis;
    let senders = apis.iter().filter(|row| SENDERS.contains(&symbol(evidence, Some(row.api))));
    let api = senders.max_by_key(|row| row.calls).map(|row| row.api);
    let kind = FindingKind::DelayedAcknowledgements {
        waits: count as u64,
        median_ns: Ns::from_f64(median_ns),
        all_ns: Ns::from_f64(all_ns),
        sends,
    };
    let blame = of_sender.blame();
    let finding = evidence.finding(group, vec![sender], api, saves_ns, kind);
    Some(Finding { blame, ..finding })
}

fn has(row: &CauseRow, thread: u32) -> bool {
    row.by_thread.iter().any(|span| span.thread == thread)
}
