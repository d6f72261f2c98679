//! Threads that do the same again and again until they are told that all is done.
//!
//! That a thread is told so is not recorded: a variable is set. What is seen is that it ends soon after its creator has waited for threads
//! that run something else, and that it neither gets anything from these nor hands anything to them: they share locks at most.

use super::Creators;
use crate::analysis::Analysis;
use crate::causes::Purpose;
use crate::groups::Groups;
use crate::long_waits::LongWait;

/// It ends after at most this part of its life: within a few of its rounds.
const SOON: f64 = 0.1;

/// Returns for each thread the one that may have told it to end, and since when, if there is one. `threads` are the waits of each.
pub(super) fn until(
    analysis: &Analysis,
    groups: &Groups,
    threads: &[&[LongWait]],
    creators: &Creators,
) -> Vec<Option<(u32, u64)>> {
    let all = 0..threads.len() as u32;
    all.map(|thread| {
        told_to_end(analysis, groups, threads, (thread, creators.creator_of(analysis, thread)?))
    })
    .collect()
}

fn told_to_end(
    analysis: &Analysis,
    groups: &Groups,
    threads: &[&[LongWait]],
    (thread, creator): (u32, u32),
) -> Option<(u32, u64)> {
    let group_of = |thread: u32| groups.of_thread.get(thread as usize).copied();
    let own = group_of(thread)?;
    let row = analysis.threads.get(thread as usize)?;
    let ends = row.end_ns.0;
    // (Threads that do the same end at about the same time as a rule, since each has its part of the work.)
    let is_for_others = |wait: &&LongWait| {
        let is_end = wait.wait.purpose == Purpose::Join || wait.wait.purpose.is_handover();
        is_end
            && wait.end_ns <= ends
            && wait.waker.is_some_and(|waker| group_of(waker) != Some(own))
    };
    let last = threads.get(creator as usize)?.iter().filter(is_for_others);
    let last = last.max_by_key(|wait| wait.end_ns)?;
    let (waker, since) = (last.waker?, last.end_ns);
    let is_soon = (ends - since) as f64 <= SOON * row.lifetime_ns.as_f64();
    let others = group_of(waker)?;
    (is_soon && !hand_over(groups, threads, own, others)).then_some((creator, since))
}

/// Whether threads of one of two groups wait for those of the other for anything but a lock.
fn hand_over(groups: &Groups, threads: &[&[LongWait]], one: u32, other: u32) -> bool {
    let between = |group: u32, wait: &LongWait| {
        let waker = wait.waker.and_then(|waker| groups.of_thread.get(waker as usize));
        let other = if group == one { other } else { one };
        waker == Some(&other) && !wait.wait.purpose.is_lock()
    };
    let waits = threads.iter().zip(&groups.of_thread);
    let of_both = waits.filter(|&(_, &group)| group == one || group == other);
    of_both.into_iter().any(|(waits, &group)| waits.iter().any(|wait| between(group, wait)))
}
