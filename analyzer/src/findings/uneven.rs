//! Work that is divided unevenly over threads.

use std::collections::HashSet;

use super::{Blame, Evidence, Finding, FindingKind};
use crate::uneven::UnevenWork;

/// Of the time in which threads work that somebody waits for, one is alone in at least this part: with two threads, that is twice what
/// is material.
const UNEVEN: f64 = 0.1;
/// Threads that are alone for a smaller part of the longest are not named.
const NAMED: f64 = 0.1;

/// Finds groups of threads that wait for one of them.
pub(super) fn work(evidence: &Evidence<'_>) -> Vec<Finding> {
    let all = (0..).zip(&evidence.watched.uneven);
    all.filter_map(|(number, one)| of_group(evidence, number, one)).collect()
}

fn of_group(evidence: &Evidence<'_>, number: u32, one: &UnevenWork) -> Option<Finding> {
    let &(_, longest_ns) = one.by_thread.first()?;
    let saves_ns = one.loss_ns.as_f64();
    if one.alone_ns.as_f64() < UNEVEN * one.all_ns.as_f64() || !evidence.is_material(saves_ns) {
        return None;
    }
    let named = |(_, ns): &&(u32, crate::Ns)| ns.as_f64() >= NAMED * longest_ns.as_f64();
    let threads = one.by_thread.iter().filter(named).map(|&(thread, _)| thread).collect();
    let kind = FindingKind::UnevenWork {
        batches: one.batches,
        all_ns: one.all_ns,
        alone_ns: one.alone_ns,
        longest_ns,
        parked: one.parked,
        of_threads: evidence.groups.rows[one.group as usize].threads,
        waiting: one.waiting,
        uneven: number,
    };
    let finding = evidence.finding(one.group, threads, None, saves_ns, kind);
    let blame = one.wait.as_ref().map(|wait| Blame {
        process: wait.process,
        object: Some(wait.object.clone()),
        api: wait.api,
        site: wait.site,
        wait_ns: one.alone_ns,
        ..Blame::default()
    });
    Some(Finding { blame, ..finding })
}

/// Removes uneven work of threads that take turns: each of them is alone in turn.
pub(super) fn without_turns(found: Vec<Finding>) -> Vec<Finding> {
    use FindingKind as Kind;
    let mut take_turns = HashSet::new();
    for finding in &found {
        match &finding.kind {
            Kind::SerialisingLock { .. } | Kind::MutualWaits { .. } => {
                take_turns.insert(finding.group);
            }
            Kind::LimitingStage { waiting, .. } => {
                take_turns.insert(finding.group);
                take_turns.extend(waiting);
            }
            _ => {}
        }
    }
    let is_left = |finding: &Finding| {
        !matches!(finding.kind, Kind::UnevenWork { .. }) || !take_turns.contains(&finding.group)
    };
    found.into_iter().filter(is_left).collect()
}
