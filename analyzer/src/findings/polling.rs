//! Threads that look again and again whether there is something to do.

use super::flows::is_of;
use super::joint::Joint;
use super::system::by_thread;
use super::waits::{SERIALISES, named};
use super::{Evidence, Finding, FindingKind};
use crate::causes::{CauseRow, LockKey, PartyKind, Purpose, lock_key};
use crate::clock::Ns;
use crate::groups::GroupRow;

/// Waits for time that are shorter than this on average, and this many per second, are polling.
const SHORT_NS: f64 = 1e7;
const OFTEN_A_SECOND: f64 = 50.0;
/// A polling thread does little else.
const MOSTLY: f64 = 0.5;
/// The part of the waits that end because the time is over.
const NEARLY_ALL: f64 = 0.9;
/// A thread that does something after each of so many of its waits paces its work.
const EACH: f64 = 0.5;
/// A thread that uses the processor for this part of its life, and for so long after each wait, has work to do then.
const WORKS: f64 = 0.2;
const WORKS_NS: f64 = 1e6;

/// `futex`.
const FUTEX: u32 = 202;
/// So many bytes are between words that threads wait for.
const BESIDE: u64 = 4;

/// `write`, `pwrite64`, `writev`, `sendfile`, `sendto`, `sendmsg`, `pwritev`, `sendmmsg`, `pwritev2`.
pub(super) const HANDS_OUT: &[u32] = &[1, 18, 20, 40, 44, 46, 296, 307, 328];

/// Finds threads that check again and again whether there is something to do.
pub(super) fn find(evidence: &Evidence<'_>, (number, group): (u32, &GroupRow)) -> Option<Finding> {
    let rows = evidence.causes_of(number);
    let joint: Joint<'_> = rows
        .filter(|row| match row.purpose {
            Purpose::Sleep | Purpose::Readiness | Purpose::Completion => true,
            // A wait with a timeout is mostly ended by it.
            purpose if purpose.is_handover() => {
                let joint: Joint<'_> = [*row].into_iter().collect();
                joint.ended_by(|waker| waker.kind == PartyKind::Time) >= NEARLY_ALL
            }
            _ => false,
        })
        .filter(|row| row.wait_ns.as_f64() <= SHORT_NS * row.waits as f64)
        .collect();
    let waits = joint.by_thread();
    let (longest, thread) = *waits.first()?;
    let lifetime = evidence.analysis.threads[thread as usize].lifetime_ns.as_f64();
    let mean_ns = joint.wait_ns() / joint.waits().max(1) as f64;
    let per_second = joint.waits() as f64 * 1e9 / group.lifetime_ns.as_f64().max(1.0);
    let over = joint.ended_by(|waker| waker.kind == PartyKind::Time);
    // What is said is said of all that wait so: an average of one that does little else and of others that do is no thread's.
    let rows = waits.iter().map(|&(_, thread)| &evidence.analysis.threads[thread as usize]);
    let lives: f64 = rows.map(|row| row.lifetime_ns.as_f64()).sum();
    if joint.wait_ns() < MOSTLY * lives {
        return None;
    }
    if longest < MOSTLY * lifetime || per_second < OFTEN_A_SECOND || over < NEARLY_ALL {
        return None;
    }
    if paces_work(evidence, number, &waits, joint.waits())
        || has_lock(evidence, number, SERIALISES * lifetime)
        || keeps_back(evidence, number, MOSTLY * joint.wait_ns())
    {
        return None;
    }
    // Not worth reporting for a short life.
    if !evidence.is_material(longest) || longest < SERIALISES * lifetime {
        return None;
    }
    let kind = FindingKind::Polling { waits: joint.waits(), mean_ns, per_second };
    let blame = joint.blame()?;
    let finding = evidence.finding(number, named(waits), blame.api, 0.0, kind);
    Some(Finding { blame: Some(blame), ..finding })
}

/// Whether threads wait for one word of memory, and end waits of others, for at least so long, for the one beside it, as at a read-write lock
/// of Rust's: who only looks for something to do neither waits for others nor has them wait.
fn has_lock(evidence: &Evidence<'_>, group: u32, least_ns: f64) -> bool {
    let word = |row: &CauseRow| match lock_key(&row.object, row.process)? {
        LockKey::Word(object, at, process) => Some((object, process, at)),
        LockKey::File(_) => None,
    };
    let is_word = |row: &&CauseRow| row.syscall == Some(FUTEX) && row.purpose.is_handover();
    let own: Vec<_> = evidence.causes_of(group).filter(is_word).filter_map(word).collect();
    let is_beside = |row: &CauseRow| {
        word(row).is_some_and(|(of, by, at)| {
            own.iter().any(|own| (own.0, own.1) == (of, by) && own.2.abs_diff(at) == BESIDE)
        })
    };
    let others = evidence.watched.causes.iter().filter(|row| row.group != group).filter(is_word);
    let wakers = others.filter(|row| is_beside(row)).flat_map(|row| &row.wakers);
    let ended = wakers.filter(|waker| is_of(group)(waker));
    ended.map(|waker| waker.wait_ns.as_f64()).sum::<f64>() >= least_ns
}

/// Whether others wait for room for what they write, for at least so long, until threads read it: these always have something to do, and sleep
/// nevertheless.
fn keeps_back(evidence: &Evidence<'_>, group: u32, least_ns: f64) -> bool {
    let is_write = |row: &&CauseRow| row.syscall.is_some_and(|number| HANDS_OUT.contains(&number));
    let wakers = evidence.watched.causes.iter().filter(is_write).flat_map(|row| &row.wakers);
    let ended = wakers.filter(|waker| is_of(group)(waker));
    ended.map(|waker| waker.wait_ns.as_f64()).sum::<f64>() >= least_ns
}

/// Whether threads let time pass between pieces of work: after most waits they send or write something, or hand something to
/// others that wait for it; or what they do between the waits takes long. Who polls looks, and sleeps again.
fn paces_work(evidence: &Evidence<'_>, group: u32, threads: &[(f64, u32)], waits: u64) -> bool {
    let waits = waits.max(1) as f64;
    let is_of_these = |thread: u32| threads.iter().any(|&(_, own)| own == thread);
    let sent = by_thread(evidence, HANDS_OUT);
    let sent = sent.iter().filter(|sent| is_of_these(sent.1));
    let sends: f64 = sent.map(|sent| sent.2 as f64).sum();
    // Threads of one group meet at barriers, and hand things to each other; a lock is not handed over.
    let is_handed = |row: &&CauseRow| row.purpose.is_handover() || row.purpose == Purpose::Barrier;
    let causes = evidence.watched.causes.iter();
    let others = causes.filter(|row| row.group != group || is_handed(row));
    let ended = others
        .flat_map(|row| &row.wakers)
        .filter(|waker| waker.kind == PartyKind::Thread && waker.group == Some(group));
    let wakes: f64 = ended.map(|waker| waker.waits as f64).sum();
    let rows = threads.iter().map(|&(_, thread)| &evidence.analysis.threads[thread as usize]);
    let on_cpu: f64 = rows.clone().filter_map(|row| row.on_cpu_ns).map(Ns::as_f64).sum();
    let lives: f64 = rows.map(|row| row.lifetime_ns.as_f64()).sum();
    sends.max(wakes) >= EACH * waits || on_cpu >= (WORKS * lives).max(WORKS_NS * waits)
}
