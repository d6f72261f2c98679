//! Threads that a timer wakes often, and that do next to nothing then.

use std::collections::HashSet;

use super::joint::Joint;
use super::system::{by_thread, numbers};
use super::waits::named;
use super::{Evidence, Finding, FindingKind};
use crate::causes::{Purpose, WaitObject};
use crate::clock::Ns;
use crate::groups::GroupRow;
use crate::overhead::OWN;

/// So many wake-ups a second cost something even if nothing is done: a processor is woken, and the thread is switched to.
const OFTEN_A_SECOND: f64 = 1_000.0;
/// A second's worth is not what a program does for a moment.
const MANY: u64 = 1_000;
/// The part of their lives that the threads wait for the timer.
const MOSTLY: f64 = 0.5;
/// Who runs for longer than this after a wake-up, without what the kernel does, has something to do. To read the timer and the clock and
/// to wait again takes half of it.
const IDLE_NS: f64 = 2_000.0;
/// Who makes other system calls after more than this part of the wake-ups does something.
const FEW: f64 = 0.1;

/// `read`, `readv`: of the timer, how often it has expired.
const READS: &[u32] = &[0, 19];
/// `poll`, `select`, `epoll_wait` and their like.
const WAITS: &[u32] = &[7, 23, 232, 270, 271, 281, 441];

/// Finds threads that timers wake for next to nothing.
pub(super) fn idle(evidence: &Evidence<'_>, (number, _): (u32, &GroupRow)) -> Option<Finding> {
    let is_timer = |object: &WaitObject| matches!(object, WaitObject::File { name } if name.ends_with("[timerfd]"));
    let rows = evidence.causes_of(number).filter(|row| is_timer(&row.object));
    let joint: Joint<'_> =
        rows.filter(|row| matches!(row.purpose, Purpose::Readiness | Purpose::File)).collect();
    let waits = joint.by_thread();
    let (longest, _) = *waits.first()?;
    let threads: HashSet<u32> = waits.iter().map(|&(_, thread)| thread).collect();
    let rows = threads.iter().map(|&thread| &evidence.analysis.threads[thread as usize]);
    let lives: f64 = rows.map(|row| row.lifetime_ns.as_f64()).sum();
    let wakes = joint.waits();
    let per_second = wakes as f64 * 1e9 / lives.max(1.0);
    if wakes < MANY || per_second < OFTEN_A_SECOND || joint.wait_ns() < MOSTLY * lives {
        return None;
    }
    let runs_ns = runs_ns(evidence, &threads)? / wakes as f64;
    if runs_ns > IDLE_NS || does_something(evidence, &threads, wakes) {
        return None;
    }
    // Not worth reporting for a short life.
    if !evidence.is_material(longest) {
        return None;
    }
    let kind = FindingKind::IdleTimer {
        waits: wakes,
        per_second,
        mean_ns: joint.wait_ns() / wakes as f64,
        runs_ns: Ns::from_f64(runs_ns),
    };
    let blame = joint.blame()?;
    let finding = evidence.finding(number, named(waits), blame.api, 0.0, kind);
    Some(Finding { blame: Some(blame), ..finding })
}

/// Returns how long these threads run outside of the kernel, without chase, by samples; `None` if there are none of them.
fn runs_ns(evidence: &Evidence<'_>, threads: &HashSet<u32>) -> Option<f64> {
    let numbers = numbers(evidence);
    let is_own = |object: u32| {
        evidence.analysis.objects.get(object as usize).is_some_and(|object| object.name == OWN)
    };
    let rows = evidence.analysis.on_cpu.of_threads.iter().filter(|row| {
        let thread = numbers.get(&(row.process as usize, row.thread));
        thread.is_some_and(|thread| threads.contains(thread))
    });
    let mut sum = None;
    for row in rows {
        let ns = if is_own(row.object) { 0 } else { row.ns.0.saturating_sub(row.kernel_ns.0) };
        *sum.get_or_insert(0.0) += ns as f64;
    }
    sum
}

/// Whether these threads make other system calls than to read the timer and to wait for it again.
fn does_something(evidence: &Evidence<'_>, threads: &HashSet<u32>, wakes: u64) -> bool {
    let calls = |numbers: &[u32]| {
        let own = by_thread(evidence, numbers);
        let own = own.iter().filter(|(_, thread, _)| threads.contains(thread));
        own.map(|&(.., calls)| calls as f64).sum::<f64>()
    };
    let all: HashSet<u32> =
        evidence.analysis.syscalls.by_thread.iter().map(|row| row.number).collect();
    let others: Vec<u32> = all
        .into_iter()
        .filter(|number| !READS.contains(number) && !WAITS.contains(number))
        .collect();
    let wakes = wakes as f64;
    calls(&others) > FEW * wakes || calls(READS) > (1.0 + FEW) * wakes
}
