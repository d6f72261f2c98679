//! What a run would save at most without some of its waits and calls.
//!
//! The run is replayed on its recorded order of events: a thread goes on where the thread that wakes it has got to, but not
//! before it has got there itself; a new thread begins where its creator has got to. Waits that are taken out take no time.
//! All other durations stay, and so do all other waits for each other, so what comes out is the length of the longest
//! path that remains: a lower bound of the time that the run would take, since processors, or a lock that is then taken more
//! often at once, can only add to it. (Zeroing a part of the critical path: J. K. Hollingsworth, "Critical Path
//! Profiling of Message Passing and Shared-Memory Programs", IEEE TPDS 9(10), 1998; that the longest path has to be found
//! anew, since another one may be hardly shorter: C.-Q. Yang and B. P. Miller, ICDCS 1988.)
//!
//! A thread may do the same again and again until all others are done: a flusher, a ticker. What it does is as long as the rest of the run,
//! so it bounds nothing: it ends as long after its creator went on as it did (see [`until`]).
//!
//! When a thread is inside which call is not recorded, only how long in all. What it runs there is taken from the path
//! that remains: as much as it is in all, and at most what the thread runs on that path.

use std::collections::{BTreeMap, HashMap};

use serde::Serialize;

use super::until::until;
use super::{Creators, Doing, PathPart, PathStep, parts, recorded_waits};
use crate::analysis::Analysis;
use crate::causes::{NamingPlaces, PathWait};
use crate::clock::Ns;
use crate::groups::Groups;
use crate::image::Image;
use crate::long_waits::LongWait;
use crate::rows::ThreadRow;

/// A process ends when its last thread does, but for this part of the life of one that waits meanwhile.
const AT_ONCE: f64 = 0.05;

/// What is taken out of a run.
#[derive(Clone, Copy)]
pub struct Without<'a> {
    /// Whether a wait of a millisecond or more is.
    pub wait: &'a dyn Fn(&PathWait) -> bool,
    /// How much of a thread's time is, by number in [`Analysis::threads`]: those waits, shorter ones and running.
    pub time: &'a dyn Fn(u32) -> Ns,
    /// Whether all that a thread does takes no time, but for its waits for other threads; by number in [`Analysis::threads`].
    pub thread: &'a dyn Fn(u32) -> bool,
}

/// What would remain of the run, and what it would save.
#[derive(Clone, Debug, Serialize)]
pub struct WhatIf {
    /// The run as it was.
    pub wall_ns: Ns,
    /// How long it would take, at least.
    pub at_least_ns: Ns,
    /// How much sooner it would be done, at most; the difference of the two.
    pub saves_at_most_ns: Ns,
    /// The same as a share of the run.
    pub share: f64,
    /// Waits of a millisecond or more that would not be.
    pub waits: u64,
    /// Their total time, in all threads.
    pub waits_ns: Ns,
    /// The part of `saves_at_most_ns` that is running and shorter waits. Of `parts` and `steps` it is not taken.
    pub running_ns: Ns,
    /// The longest path that remains, from the end back, as in [`CriticalPath`](super::CriticalPath).
    #[serde(skip)]
    pub steps: Vec<PathStep>,
    /// Its steps by what is done, longest first.
    #[serde(skip)]
    pub parts: Vec<PathPart>,
    /// As in [`CriticalPath`](super::CriticalPath): with missing waits, the bound may be wrong.
    pub lost: u64,
}

/// Replays a run without some of its waits and calls; `None` if no companion recorded long waits.
#[must_use]
pub fn what_if(
    images: &[Image],
    analysis: &Analysis,
    groups: &Groups,
    naming: &dyn NamingPlaces,
    without: &Without<'_>,
) -> Option<WhatIf> {
    let (threads, lost) = recorded_waits(images, analysis, groups, naming)?;
    let waits: Vec<_> = threads.iter().map(|waits| &**waits).collect();
    let found = replay_without(analysis, groups, &waits, without)?;
    Some(WhatIf { lost, ..found })
}

/// The same for waits that are known; none of them is missing.
pub(crate) fn replay_without(
    analysis: &Analysis,
    groups: &Groups,
    threads: &[&[LongWait]],
    without: &Without<'_>,
) -> Option<WhatIf> {
    let is_gone = (0..threads.len() as u32).map(without.thread).collect();
    let creators = Creators::new(analysis, threads.iter().copied());
    let until = until(analysis, groups, threads, &creators);
    let mut replay = Replay { knots: vec![Vec::new(); threads.len()], is_gone, until, order: 0 };
    let mut gone: BTreeMap<u32, u64> = BTreeMap::new();
    let mut waits = 0;
    for (at, thread, wait) in events(analysis, threads) {
        let Some(wait) = wait else {
            replay.start(thread, at, creators.creator_of(analysis, thread));
            continue;
        };
        let is_gone = (without.wait)(&wait.wait);
        let took = replay.wait(thread, wait, is_gone);
        if is_gone && took > 0 {
            waits += 1;
            let sum = gone.entry(thread).or_default();
            *sum = sum.saturating_add(took);
        }
    }
    let ends = (0..).zip(&analysis.threads);
    let ends = ends.filter_map(|(thread, row)| {
        let end = row.end_ns.0;
        // Who waits when its process ends is ended by the thread that ends last.
        let by = replay.waits_until(thread, end).then(|| replay.ends_process(analysis, row));
        let (by, at) = by.flatten().unwrap_or((thread, end));
        replay.time(by, at).map(|new| (new + (end - at), by, at))
    });
    let (new, thread, end) =
        ends.max_by_key(|&(new, thread, _)| (new, std::cmp::Reverse(thread)))?;
    let wall = analysis.span_ns.0;
    // What the run takes after its last thread.
    let last = analysis.threads.iter().map(|row| row.end_ns.0).max()?;
    let length = new.saturating_add(wall.saturating_sub(last)).min(wall);
    let steps = replay.path(threads, thread, end, length);
    let mut runs: BTreeMap<u32, u64> = BTreeMap::new();
    for step in steps.iter().filter(|step| step.doing == Doing::Running) {
        *runs.entry(step.thread).or_default() += step.end_ns.0 - step.begin_ns.0;
    }
    let running = |(&thread, &runs): (&u32, &u64)| {
        let waited = gone.get(&thread).copied().unwrap_or(0);
        (without.time)(thread).0.saturating_sub(waited).min(runs)
    };
    let running: u64 = runs.iter().map(running).sum();
    let at_least = length.saturating_sub(running);
    let saves = wall - at_least;
    Some(WhatIf {
        wall_ns: Ns(wall),
        at_least_ns: Ns(at_least),
        saves_at_most_ns: Ns(saves),
        share: saves as f64 / Ns(wall).as_f64().max(1.0),
        waits,
        waits_ns: Ns(gone.values().fold(0, |sum: u64, ns| sum.saturating_add(*ns))),
        running_ns: Ns(running),
        // (What takes no time is not taken from what threads run, so that can't be told apart.)
        parts: parts(groups, &steps, Ns(length), None),
        steps,
        lost: 0,
    })
}

/// Beginnings of threads, and ends of waits, in order of time.
fn events<'w>(
    analysis: &Analysis,
    threads: &[&'w [LongWait]],
) -> Vec<(u64, u32, Option<&'w LongWait>)> {
    let mut events = Vec::new();
    for ((thread, row), waits) in (0..).zip(&analysis.threads).zip(threads) {
        events.push((row.start_ns.0, thread, None));
        events.extend(waits.iter().map(|wait| (wait.end_ns, thread, Some(wait))));
    }
    events.sort_by_key(|&(at, thread, wait)| (at, wait.is_some(), thread));
    events
}

/// From `at` on, until its next wait, a thread is as much earlier as it is there.
#[derive(Clone, Copy)]
struct Knot {
    at: u64,
    new: u64,
    before: Before,
    order: usize,
}

/// How a thread came to where a knot is.
#[derive(Clone, Copy)]
enum Before {
    /// It began there: its creator was at that time.
    Start(Option<(u32, u64)>),
    /// It waited from then on, but no longer has to: because that is taken out, or because it comes too late.
    NoWait(u64),
    /// It waited from then on, for so long, for what no thread of the run did.
    Wait(u64),
    /// This thread woke it then.
    Woken(u32, u64),
}

struct Replay {
    /// By thread, in order.
    knots: Vec<Vec<Knot>>,
    /// Threads that take no time for what they do.
    is_gone: Vec<bool>,
    /// Of threads that go on until another one tells them to end: that one, and since when it may have done so.
    until: Vec<Option<(u32, u64)>>,
    /// The number of knots.
    order: usize,
}

impl Replay {
    /// The last knot of a thread that is no later than this, of those before `order`.
    fn knot(&self, thread: u32, at: u64, order: usize) -> Option<Knot> {
        let knots = self.knots.get(thread as usize)?;
        let before = knots.partition_point(|knot| knot.at <= at && knot.order < order);
        before.checked_sub(1).map(|last| knots[last])
    }

    /// When a thread gets to where it was at this time; `None` before it began.
    fn time(&self, thread: u32, at: u64) -> Option<u64> {
        let own = self.own_time(thread, at)?;
        Some(self.told_to_end(thread, at).map_or(own, |(_, _, new)| own.min(new)))
    }

    /// The same by what it does itself.
    fn own_time(&self, thread: u32, at: u64) -> Option<u64> {
        self.knot(thread, at, self.order).map(|knot| knot.new + self.took(thread, at - knot.at))
    }

    /// Who told a thread to end, when, and when it gets to `at` if it did nothing but for that; `None` if it has not been told by then.
    fn told_to_end(&self, thread: u32, at: u64) -> Option<(u32, u64, u64)> {
        let (by, since) = self.until[thread as usize].filter(|&(_, since)| since <= at)?;
        let new = self.own_time(by, since)?;
        Some((by, since, new.saturating_add(at - since)))
    }

    /// Returns the thread that ends the process of another one, which waits, and when: the last one that does not wait, if that is when the
    /// other one ends, too.
    fn ends_process(&self, analysis: &Analysis, waiting: &ThreadRow) -> Option<(u32, u64)> {
        let threads =
            (0..).zip(&analysis.threads).filter(|(_, row)| row.process == waiting.process);
        let own = threads.filter(|&(thread, row)| !self.waits_until(thread, row.end_ns.0));
        let last = own.map(|(thread, row)| (thread, row.end_ns.0)).max_by_key(|&(_, end)| end);
        let end = waiting.end_ns.0;
        let at_once = waiting.lifetime_ns.as_f64() * AT_ONCE;
        last.filter(|&(_, at)| at <= end && Ns(end - at).as_f64() <= at_once)
    }

    /// Whether a thread waited until then, and nobody woke it: then its process ended, not this thread.
    fn waits_until(&self, thread: u32, end: u64) -> bool {
        let last = self.knots.get(thread as usize).and_then(|knots| knots.last());
        last.is_some_and(|knot| knot.at >= end && matches!(knot.before, Before::Wait(_)))
    }

    /// How much of so much time of a thread is left.
    fn took(&self, thread: u32, ns: u64) -> u64 {
        if self.is_gone[thread as usize] { 0 } else { ns }
    }

    fn push(&mut self, thread: u32, at: u64, new: u64, before: Before) {
        self.knots[thread as usize].push(Knot { at, new, before, order: self.order });
        self.order += 1;
    }

    fn start(&mut self, thread: u32, at: u64, creator: Option<u32>) {
        let by = creator.and_then(|creator| Some((creator, self.time(creator, at)?)));
        match by {
            Some((creator, new)) => self.push(thread, at, new, Before::Start(Some((creator, at)))),
            None => self.push(thread, at, at, Before::Start(None)),
        }
    }

    /// Replays a wait, and returns how long it was.
    fn wait(&mut self, thread: u32, wait: &LongWait, is_gone: bool) -> u64 {
        // (Of times that overlap, which can't be, the later one is cut off.)
        let Some(last) = self.knots[thread as usize].last().copied() else { return 0 };
        let begin = wait.begin_ns.max(last.at);
        if wait.end_ns <= begin {
            return 0;
        }
        let took = wait.end_ns - begin;
        let arrives = last.new + self.took(thread, begin - last.at);
        if is_gone {
            self.push(thread, wait.end_ns, arrives, Before::NoWait(begin));
            return took;
        }
        let woken = wait.woken_ns.filter(|woken| (begin..=wait.end_ns).contains(woken));
        let by = wait.waker.zip(woken);
        let by = by.and_then(|(waker, at)| Some((waker, at, self.time(waker, at)?)));
        match by {
            Some((waker, at, new)) if new + (wait.end_ns - at) > arrives => {
                self.push(thread, wait.end_ns, new + (wait.end_ns - at), Before::Woken(waker, at));
            }
            Some(_) => self.push(thread, wait.end_ns, arrives, Before::NoWait(begin)),
            None => {
                let arrives = arrives + self.took(thread, took);
                self.push(thread, wait.end_ns, arrives, Before::Wait(begin));
            }
        }
        took
    }

    /// The steps that lead to where a thread was at `at`, as the last step of a run of `length`.
    fn path(
        &self,
        threads: &[&[LongWait]],
        mut thread: u32,
        mut at: u64,
        length: u64,
    ) -> Vec<PathStep> {
        let by_end: HashMap<(u32, u64), &LongWait> = (0..)
            .zip(threads)
            .flat_map(|(thread, waits)| waits.iter().map(move |wait| ((thread, wait.end_ns), wait)))
            .collect();
        let mut steps = Vec::new();
        let (mut now, mut order) = (length, self.order);
        // A knot is reached only from later ones, so this ends.
        while let Some(knot) = self.knot(thread, at, order) {
            let mut step = |begin: u64, doing: Doing| {
                let begin = begin.min(now);
                if begin < now {
                    let (begin_ns, end_ns) = (Ns(begin), Ns(now));
                    steps.push(PathStep { thread, begin_ns, end_ns, doing });
                }
                now = begin;
            };
            // (Until it is told to end, it does whatever there is time for.)
            let own = knot.new + self.took(thread, at - knot.at);
            if let Some((by, since, new)) = self.told_to_end(thread, at).filter(|told| told.2 < own)
            {
                step(new - (at - since), Doing::Running);
                (thread, at) = (by, since);
                continue;
            }
            step(knot.new, Doing::Running);
            order = knot.order;
            match knot.before {
                Before::Start(None) => break,
                Before::Start(Some(creator)) => (thread, at) = creator,
                Before::NoWait(begin) => at = begin,
                Before::Wait(begin) => {
                    if let Some(wait) = by_end.get(&(thread, knot.at)) {
                        let began = knot.new.saturating_sub(self.took(thread, knot.at - begin));
                        step(began, Doing::Waiting(wait.wait.clone()));
                    }
                    at = begin;
                }
                Before::Woken(waker, woken) => {
                    step(knot.new.saturating_sub(knot.at - woken), Doing::Woken);
                    (thread, at) = (waker, woken);
                }
            }
        }
        if now > 0 {
            let (begin_ns, end_ns) = (Ns(0), Ns(now));
            steps.push(PathStep { thread, begin_ns, end_ns, doing: Doing::Running });
        }
        steps
    }
}
