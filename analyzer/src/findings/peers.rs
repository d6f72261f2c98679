//! Connections whose other end is slow to answer.

use std::collections::{BTreeMap, BTreeSet};

use super::joint::Joint;
use super::system::{by_thread, symbol};
use super::waits::{STARVES, named};
use super::{Evidence, Finding, FindingKind};
use crate::causes::{CauseRow, PartyKind, Purpose, WaitObject};
use crate::clock::Ns;
use crate::groups::GroupRow;
use crate::rows::ThreadRow;

/// Waits that threads of the run end for this part are waits for these.
const MOSTLY: f64 = 0.5;
/// Who asks sends about as often as it waits for an answer; who only listens does not.
const ASKS: f64 = 0.5;
/// `write`, `writev`, `sendto`, `sendmsg`, `sendmmsg`.
const SENDS: &[u32] = &[1, 20, 44, 46, 307];

/// The ends of a connection with addresses, as in the name of what is waited for: own, other.
fn ends(row: &CauseRow) -> Option<(&str, &str)> {
    let WaitObject::File { name } = &row.object else { return None };
    name.strip_prefix("socket ")?.split_once(" to ")
}

fn port(address: &str) -> Option<&str> {
    address.rsplit_once(':').map(|(_, port)| port)
}

/// Finds a connection, made by this side, whose peer keeps threads waiting: in a call of that connection's, or in one that waits
/// for whichever of several is ready next.
pub(super) fn slow(evidence: &Evidence<'_>, (number, group): (u32, &GroupRow)) -> Option<Finding> {
    let all = &evidence.analysis.threads;
    let processes: BTreeSet<usize> =
        group.members.iter().map(|&thread| all[thread as usize].process).collect();
    let that_call = |names: &[&str]| -> BTreeSet<usize> {
        let calls = |row: &&ThreadRow| {
            let mut apis = row.apis.iter().filter(|row| row.calls > 0);
            apis.any(|row| names.contains(&symbol(evidence, Some(row.api))))
        };
        let threads = all.iter().filter(|row| processes.contains(&row.process));
        threads.filter(calls).map(|row| row.process).collect()
    };
    if that_call(&["connect"]).is_empty() {
        return None;
    }
    // Connections that were accepted have the port that was listened at.
    let accepting = that_call(&["accept", "accept4"]);
    let listening: BTreeSet<&str> = evidence
        .watched
        .causes
        .iter()
        .filter(|row| {
            let mut threads = row.by_thread.iter().map(|span| &all[span.thread as usize]);
            threads.any(|thread| processes.contains(&thread.process))
        })
        .filter_map(|row| match &row.object {
            WaitObject::File { name } => name.strip_prefix("socket "),
            _ => None,
        })
        .filter(|ends| !ends.contains(" to "))
        .filter_map(port)
        .collect();
    let is_made = |row: &CauseRow| {
        let own = ends(row).and_then(|(own, _)| port(own));
        let mut threads = row.by_thread.iter().map(|span| &all[span.thread as usize]);
        !threads.any(|thread| accepting.contains(&thread.process))
            || own.is_some_and(|own| !listening.is_empty() && !listening.contains(own))
    };
    let joint: Joint<'_> = evidence
        .each_cause()
        .filter(|row| row.group == number)
        .filter(|row| match row.purpose {
            Purpose::Network => true,
            Purpose::Readiness => ends(row).is_some(),
            _ => false,
        })
        .filter(|row| is_made(row))
        .collect();
    // Threads of the run have groups; waits for those are waits for a stage. But where a program is started again as its own server,
    // both are of one group.
    let is_apart = are_apart(evidence, number, &joint);
    let lifetime_ns = match is_apart {
        true => {
            joint.by_thread().iter().map(|wait| all[wait.1 as usize].lifetime_ns.as_f64()).sum()
        }
        false => group.lifetime_ns.as_f64(),
    };
    let within = joint.ended_by(|waker| {
        waker.kind == PartyKind::Thread
            && waker.group.is_some_and(|other| !is_apart || other != number)
    });
    if joint.wait_ns() < STARVES * lifetime_ns || within >= MOSTLY {
        return None;
    }
    let (slowest, connections) = slowest(&joint);
    let waits = slowest.by_thread();
    let (saves_ns, _) = *waits.first()?;
    let by_readiness = slowest.rows.iter().filter(|row| row.purpose == Purpose::Readiness);
    let answers: u64 = by_readiness.map(|row| row.waits).fold(0, u64::saturating_add);
    // (To whatever: it is not recorded where a thread sends what.)
    let sent = by_thread(evidence, SENDS);
    let own = sent.iter().filter(|sent| group.members.contains(&sent.1));
    let sends: u64 = own.map(|sent| sent.2).fold(0, u64::saturating_add);
    if (sends as f64) < ASKS * answers as f64 || !evidence.is_material(saves_ns) {
        return None;
    }
    let kind = FindingKind::SlowPeer {
        waits: slowest.waits(),
        wait_ns: Ns::from_f64(saves_ns),
        of_lifetime: slowest.wait_ns() / lifetime_ns.max(1.0),
    };
    let mut blame = slowest.blame()?;
    let other = slowest.rows.first().and_then(|row| ends(row)).map(|(_, other)| other);
    if let Some(other) = other.filter(|_| connections > 1) {
        let name = format!("{connections} connections to {other}");
        blame.object = Some(WaitObject::File { name });
    }
    let finding = evidence.finding(number, named(waits), blame.api, saves_ns, kind);
    Some(Finding { blame: Some(blame), ..finding })
}

/// Whether threads of the group end such waits, but no process has both threads that wait and some that end these waits.
fn are_apart(evidence: &Evidence<'_>, group: u32, joint: &Joint<'_>) -> bool {
    let process = |thread: u32| evidence.analysis.threads[thread as usize].process;
    let waiting: BTreeSet<usize> =
        joint.by_thread().iter().map(|&(_, thread)| process(thread)).collect();
    let mut waking = joint.waking_threads();
    waking.retain(|span| evidence.groups.of_thread[span.thread as usize] == group);
    !waking.is_empty() && waking.iter().all(|span| !waiting.contains(&process(span.thread)))
}

/// The waits for the peer that is waited for longest, and how many connections there are to it. Where there is no address,
/// each connection is a peer.
fn slowest<'a>(joint: &Joint<'a>) -> (Joint<'a>, usize) {
    let mut peers: BTreeMap<&str, (u64, Vec<&'a CauseRow>)> = BTreeMap::new();
    for &row in &joint.rows {
        let peer = match &row.object {
            WaitObject::File { name } => ends(row).map_or(&**name, |(_, other)| other),
            _ => "",
        };
        let (ns, rows) = peers.entry(peer).or_default();
        *ns = ns.saturating_add(row.wait_ns.0);
        rows.push(row);
    }
    let longest = peers.into_values().max_by_key(|(ns, _)| *ns);
    let rows = longest.map(|(_, rows)| rows).unwrap_or_default();
    let own: BTreeSet<_> = rows.iter().filter_map(|row| ends(row)).collect();
    (rows.into_iter().collect(), own.len())
}
