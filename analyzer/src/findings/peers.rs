//! Connections whose other end is slow to answer.

use std::collections::{BTreeMap, BTreeSet};

use super::joint::Joint;
use super::system::{by_thread, symbol};
use super::waits::{STARVES, named};
use super::{Evidence, Finding, FindingKind};
use crate::causes::{CauseRow, PartyKind, Purpose, WaitObject};
use crate::clock::Ns;
use crate::groups::GroupRow;

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
    let calls = |name: &str| {
        let threads = all.iter().filter(|row| processes.contains(&row.process));
        let mut apis = threads.flat_map(|row| &row.apis);
        apis.any(|row| row.calls > 0 && symbol(evidence, Some(row.api)) == name)
    };
    if !calls("connect") {
        return None;
    }
    // Connections that were accepted have the port that was listened at.
    let accepts = calls("accept") || calls("accept4");
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
        !accepts || own.is_some_and(|own| !listening.is_empty() && !listening.contains(own))
    };
    let joint: Joint<'_> = evidence
        .causes_of(number)
        .filter(|row| match row.purpose {
            Purpose::Network => true,
            Purpose::Readiness => ends(row).is_some(),
            _ => false,
        })
        .filter(|row| is_made(row))
        .collect();
    let of_lifetime = joint.wait_ns() / group.lifetime_ns.as_f64().max(1.0);
    // Threads of the run have groups; waits for those are waits for a stage.
    let within = joint.ended_by(|waker| waker.kind == PartyKind::Thread && waker.group.is_some());
    if of_lifetime < STARVES || within >= MOSTLY {
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
        of_lifetime: slowest.wait_ns() / group.lifetime_ns.as_f64().max(1.0),
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
