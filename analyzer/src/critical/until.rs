//! Threads that do the same again and again until they are told that all is done.
//!
//! That a thread is told so is not recorded: a variable is set. What is seen is that it ends soon after its creator has waited for threads
//! that run something else, and that it neither gets anything from these nor hands anything to them: they share locks at most. Or its creator has
//! done something else itself, and then waits for its end.

use super::Creators;
use crate::analysis::Analysis;
use crate::causes::Purpose;
use crate::groups::Groups;
use crate::long_waits::LongWait;

/// It ends after at most this part of its life: within a few of its rounds.
const SOON: f64 = 0.1;
/// Whom its creator tells so before it waits for its end waits so often after that, at most: it is in a round, and may begin another.
const LAST_WAITS: usize = 2;
/// A thread with fewer waits than this does nothing again and again, as far as can be seen.
const AGAIN: usize = 20;

/// Returns for each thread the one that may have told it to end, and since when, if there is one. `threads` are the waits of each.
pub(super) fn until(
    analysis: &Analysis,
    groups: &Groups,
    threads: &[&[LongWait]],
    creators: &Creators,
) -> Vec<Option<(u32, u64)>> {
    let run = Run { analysis, groups, threads };
    let all = 0..threads.len() as u32;
    all.map(|thread| {
        let pair = (thread, creators.creator_of(analysis, thread)?);
        told_to_end(&run, pair).or_else(|| told_by_creator(&run, pair))
    })
    .collect()
}

/// The threads of a run, and their long waits.
struct Run<'a> {
    analysis: &'a Analysis,
    groups: &'a Groups,
    threads: &'a [&'a [LongWait]],
}

impl Run<'_> {
    fn group_of(&self, thread: u32) -> Option<u32> {
        self.groups.of_thread.get(thread as usize).copied()
    }
}

fn told_to_end(run: &Run<'_>, (thread, creator): (u32, u32)) -> Option<(u32, u64)> {
    let own = run.group_of(thread)?;
    let row = run.analysis.threads.get(thread as usize)?;
    let ends = row.end_ns.0;
    // (Threads that do the same end at about the same time as a rule, since each has its part of the work.)
    let is_for_others = |wait: &&LongWait| {
        let is_end = wait.wait.purpose == Purpose::Join || wait.wait.purpose.is_handover();
        is_end
            && wait.end_ns <= ends
            && wait.waker.is_some_and(|waker| run.group_of(waker) != Some(own))
    };
    let last = run.threads.get(creator as usize)?.iter().filter(is_for_others);
    let last = last.max_by_key(|wait| wait.end_ns)?;
    let (waker, since) = (last.waker?, last.end_ns);
    let is_soon = (ends - since) as f64 <= SOON * row.lifetime_ns.as_f64();
    let others = run.group_of(waker)?;
    (is_soon && !hand_over(run, own, others)).then_some((creator, since))
}

/// The same of a thread whose creator does not wait for others before it tells it to end.
fn told_by_creator(run: &Run<'_>, (thread, creator): (u32, u32)) -> Option<(u32, u64)> {
    let (own, others) = (run.group_of(thread)?, run.group_of(creator)?);
    let row = run.analysis.threads.get(thread as usize)?;
    let is_end = |wait: &&LongWait| {
        wait.wait.purpose == Purpose::Join
            && (row.start_ns.0..=row.end_ns.0).contains(&wait.begin_ns)
            && wait.waker.is_some_and(|waker| run.group_of(waker) == Some(own))
    };
    // (Of several threads that it has told so, it waits for one after the other.)
    let ends = run.threads.get(creator as usize)?.iter().filter(is_end);
    let since = ends.map(|wait| wait.begin_ns).min()?;
    let waits = run.threads.get(thread as usize)?;
    let last = waits.iter().filter(|wait| wait.begin_ns >= since).count();
    let is_soon = (row.end_ns.0 - since) as f64 <= SOON * row.lifetime_ns.as_f64();
    let is_told = is_soon && waits.len() >= AGAIN && last <= LAST_WAITS;
    (own != others && is_told && !hand_over(run, own, others)).then_some((creator, since))
}

/// Whether threads of one of two groups wait for those of the other for anything but a lock, or their ends.
fn hand_over(run: &Run<'_>, one: u32, other: u32) -> bool {
    let between = |group: u32, wait: &LongWait| {
        let waker = wait.waker.and_then(|waker| run.group_of(waker));
        let other = if group == one { other } else { one };
        let purpose = wait.wait.purpose;
        waker == Some(other) && !purpose.is_lock() && purpose != Purpose::Join
    };
    let waits = run.threads.iter().zip(&run.groups.of_thread);
    let of_both = waits.filter(|&(_, &group)| group == one || group == other);
    of_both.into_iter().any(|(waits, &group)| waits.iter().any(|wait| between(group, wait)))
}
