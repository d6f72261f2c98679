//! The critical path: what would have to be faster for the run to end sooner.
//!
//! It is followed backwards from the end. While a thread on it runs, the path is in that thread. Where the thread had
//! waited, the path continues in the thread that woke it, at the moment of waking; where a thread began, in the
//! thread that created it. A wait that no thread of the run ended (for time, a disk, another machine) is itself part
//! of the path. So the parts adjoin without gaps, and together are as long as the run.
//!
//! Of a thread that does the same again and again until it is told to end (see [`until()`]), only what it does after that is on the path:
//! all before takes as long as what the one that tells it did, where the path continues.
//!
//! Waits shorter than [`LONG_WAIT_NS`](chase_recorder::syscalls::LONG_WAIT_NS) are not recorded individually; they
//! count as time in which the thread ran. What it ran is told apart by samples, or by its calls (see [`Runs`]).

mod pieces;
mod running;
mod until;
mod what_if;

use std::cmp::Reverse;
use std::collections::HashMap;

use serde::Serialize;

use crate::analysis::Analysis;
use crate::causes::{Connection, Connections, Ends, NamingPlaces, PathWait, Purpose, WaitObject};
use crate::clock::Ns;
use crate::groups::Groups;
use crate::image::{Ending, Image};
use crate::long_waits::{LongWait, long_waits};
use crate::rows::ThreadRow;
use crate::spans::parts_of;
use crate::timed_samples::timed_samples;
pub use pieces::Pieces;
use running::Ran;
pub use running::Runs;
use until::until;
pub(crate) use what_if::replay_without;
pub use what_if::{WhatIf, Without, what_if};

/// The critical path, from the end backwards.
#[derive(Clone, Debug, Default, Serialize)]
pub struct CriticalPath {
    /// Its steps, latest first. Each ends where the previous one begins.
    pub steps: Vec<PathStep>,
    /// Its steps grouped by what was done, longest first.
    pub parts: Vec<PathPart>,
    /// A lower bound of the run's long waits that were not recorded for lack of room: where one is missing, the path
    /// stays in its thread.
    pub lost: u64,
}

/// A step of the path in one thread.
#[derive(Clone, Debug, Serialize)]
pub struct PathStep {
    /// The thread, by number in [`Analysis::threads`].
    pub thread: u32,
    /// When it begins, relative to the start of the run.
    pub begin_ns: Ns,
    /// When it ends.
    pub end_ns: Ns,
    /// What the thread did.
    #[serde(flatten)]
    pub doing: Doing,
}

/// What a thread does on the path.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase", tag = "doing")]
pub enum Doing {
    /// It runs, is ready to run, or waits for less than a millisecond at a time.
    Running,
    /// It was woken, and doesn't run yet.
    Woken,
    /// It waits for something that no thread of the run does.
    Waiting(PathWait),
}

/// Steps of one group in which its threads do the same.
#[derive(Clone, Debug, Serialize)]
pub struct PathPart {
    /// The group, by number in [`Groups::rows`].
    pub group: u32,
    /// What its threads do.
    #[serde(flatten)]
    pub doing: Doing,
    /// What they run, if they do and that is known.
    #[serde(skip)]
    pub runs: Option<Runs>,
    /// Their total time.
    pub ns: Ns,
    /// Their part of the path.
    pub share: f64,
    /// The number of steps. Those in which a thread runs may be divided among several parts, and count in each of them.
    pub steps: usize,
}

/// Finds the critical path of a run, or that part of it which is in a window of time (from when to when, since the start of the
/// run); `None` if no companion recorded long waits.
#[must_use]
pub fn critical_path(
    images: &[Image],
    analysis: &Analysis,
    groups: &Groups,
    naming: &dyn NamingPlaces,
    window: Option<(Ns, Ns)>,
) -> Option<CriticalPath> {
    let (threads, lost) = recorded_waits(images, analysis, groups, naming)?;
    let last = last_thread(analysis)?;
    let mut steps = walk(analysis, groups, threads, last);
    let (from, to) = window.unwrap_or((Ns(0), analysis.span_ns));
    let to = to.min(analysis.span_ns);
    for step in &mut steps {
        (step.begin_ns, step.end_ns) = (step.begin_ns.max(from), step.end_ns.min(to));
    }
    steps.retain(|step| step.begin_ns < step.end_ns);
    let steps: Vec<_> = steps.into_iter().flat_map(|step| recorded(analysis, step)).collect();
    let paused = analysis.pauses.between(from, to);
    let length = Ns(to.0.saturating_sub(from.0).saturating_sub(paused.0));
    let ran = Ran::new(analysis, timed_samples(images, analysis, groups));
    let parts = parts(groups, &steps, length, Some(&ran));
    Some(CriticalPath { steps, parts, lost })
}

/// What is recorded of a step, latest first.
fn recorded(analysis: &Analysis, step: PathStep) -> impl Iterator<Item = PathStep> {
    let parts = analysis.pauses.cut(step.begin_ns, step.end_ns).into_iter();
    parts.map(move |(begin_ns, end_ns)| PathStep { begin_ns, end_ns, ..step.clone() })
}

/// Returns the thread whose end was that of the run. Where a process goes on, the recording ends and nothing of the program does: then the busiest of those
/// that it has at this time.
fn last_thread(analysis: &Analysis) -> Option<u32> {
    const AT_END_NS: u64 = 10_000_000;
    let all = || (0..).zip(&analysis.threads);
    let (last, latest) = all().max_by_key(|(number, row)| (row.end_ns, Reverse(*number)))?;
    let goes_on = |process: usize| {
        let ending = analysis.processes.get(process).map(|process| process.ending);
        matches!(ending, Some(Ending::Detached | Ending::Running))
    };
    if !goes_on(latest.process) {
        return Some(last);
    }
    let is_there = |row: &ThreadRow| {
        goes_on(row.process) && row.end_ns.0.saturating_add(AT_END_NS) >= latest.end_ns.0
    };
    let there = all().filter(|(_, row)| is_there(row));
    let busiest = there.max_by_key(|(number, row)| (row.on_cpu_ns, Reverse(*number)));
    busiest.map(|(number, _)| number)
}

/// Returns the long waits of each thread, and a lower bound of those that are missing; `None` if none were recorded.
fn recorded_waits(
    images: &[Image],
    analysis: &Analysis,
    groups: &Groups,
    naming: &dyn NamingPlaces,
) -> Option<(Vec<Vec<LongWait>>, u64)> {
    let files = images.iter().filter_map(|image| image.syscalls.as_ref());
    let lost = files.map(|file| file.header().lost_blocked).max()?;
    let threads = long_waits(images, analysis, groups, naming);
    let threads: Vec<_> = threads.into_iter().map(|times| times.waits).collect();
    (!threads.iter().all(Vec::is_empty)).then_some((threads, lost))
}

/// Who created threads.
struct Creators {
    /// Threads by process and number there.
    threads: HashMap<(usize, u32), u32>,
    /// Those that started processes, by the first threads of these.
    starters: HashMap<u32, u32>,
}

impl Creators {
    /// `waits` are the long ones of each thread.
    fn new<'w>(analysis: &Analysis, waits: impl Iterator<Item = &'w [LongWait]>) -> Self {
        let all = (0..).zip(&analysis.threads);
        let threads = all.map(|(number, row)| ((row.process, row.thread), number)).collect();
        let mut firsts: HashMap<u32, (u64, u32)> = HashMap::new();
        for (thread, waits) in (0..).zip(waits) {
            let ended = waits.iter().filter_map(|wait| Some((wait.waker?, wait.end_ns)));
            for (by, at) in ended.filter(|&(by, _)| may_start(analysis, (thread, waits), by)) {
                let first = firsts.entry(by).or_insert((at, thread));
                *first = (at, thread).min(*first);
            }
        }
        let starters = firsts.into_iter().map(|(by, (_, thread))| (by, thread)).collect();
        Self { threads, starters }
    }

    /// Returns the thread that created this one: of a process's first one, the thread of its parent that waits for it first; if none does,
    /// the first one.
    fn creator_of(&self, analysis: &Analysis, thread: u32) -> Option<u32> {
        let row = &analysis.threads[thread as usize];
        let creator = row.creator.and_then(|creator| self.threads.get(&(row.process, creator)));
        let parent = || {
            let parent = analysis.processes.get(row.process)?.parent?;
            self.starters.get(&thread).or_else(|| self.threads.get(&(parent, 0)))
        };
        creator.or_else(parent).copied()
    }
}

/// Whether a thread that waits for another one may have started that one's process: it is of the parent, and waited for nothing else then.
fn may_start(analysis: &Analysis, (thread, waits): (u32, &[LongWait]), child: u32) -> bool {
    let (own, first) = (&analysis.threads[thread as usize], &analysis.threads[child as usize]);
    let parent = analysis.processes.get(first.process).and_then(|process| process.parent);
    let start = first.start_ns.0;
    let is_parent = first.thread == 0 && parent == Some(own.process) && own.start_ns.0 <= start;
    let elsewhere =
        |wait: &LongWait| wait.waker != Some(child) && wait.wait.purpose != Purpose::Child;
    let then = (start, start.saturating_add(1));
    let mut waits = parts_of(waits, |wait| (wait.begin_ns, wait.end_ns), then);
    is_parent && !waits.any(|(wait, _)| elsewhere(wait))
}

fn walk(
    analysis: &Analysis,
    groups: &Groups,
    mut threads: Vec<Vec<LongWait>>,
    last: u32,
) -> Vec<PathStep> {
    let creators = Creators::new(analysis, threads.iter().map(Vec::as_slice));
    let waits: Vec<_> = threads.iter().map(|waits| &**waits).collect();
    let mut until = until(analysis, groups, &waits, &creators);
    let (mut thread, mut now) = (last, analysis.span_ns.0);
    let mut steps = Vec::new();
    let mut visited = std::collections::HashSet::new();
    while now > 0 {
        let mut step = |begin: u64, end: u64, doing: Doing| {
            if begin < end {
                steps.push(PathStep { thread, begin_ns: Ns(begin), end_ns: Ns(end), doing });
            }
        };
        let row = &analysis.threads[thread as usize];
        let told = until[thread as usize].filter(|&(_, since)| since <= now);
        let since = told.map_or(0, |(_, since)| since);
        // Each wait is passed only once, so the loop ends.
        let own = &mut threads[thread as usize];
        while own.last().is_some_and(|interval| interval.begin_ns >= now) {
            own.pop();
        }
        let Some(interval) = own.pop_if(|interval| interval.end_ns > since) else {
            // Each thread is told to end only once.
            if let Some((by, since)) = told {
                until[thread as usize] = None;
                step(since, now, Doing::Running);
                (thread, now) = (by, since);
                continue;
            }
            let start = row.start_ns.0.min(now);
            // Each thread begins only once.
            match creators.creator_of(analysis, thread).filter(|_| visited.insert(thread)) {
                Some(before) => {
                    step(start, now, Doing::Running);
                    (thread, now) = (before, start);
                }
                None => {
                    step(0, now, Doing::Running);
                    now = 0;
                }
            }
            continue;
        };
        let (begin, waited_to) = (interval.begin_ns.max(since), interval.end_ns.min(now));
        step(waited_to, now, Doing::Running);
        // (What ended with the process was ended just after the end that the process knows of itself.)
        let woken = interval.woken_ns.filter(|woken| *woken >= begin);
        let woken = woken.map(|woken| woken.min(waited_to));
        match (interval.waker, woken) {
            (Some(waker), Some(woken)) => {
                step(woken, waited_to, Doing::Woken);
                (thread, now) = (waker, woken);
            }
            _ => {
                step(begin, waited_to, Doing::Waiting(interval.wait));
                now = begin;
            }
        }
    }
    steps
}

fn group_of(groups: &Groups, step: &PathStep) -> Option<u32> {
    groups.of_thread.get(step.thread as usize).copied()
}

/// What steps that wait for one connection each are together, if these differ in nothing but a port that the kernel has chosen: as
/// [`causes`](crate::causes) has them.
fn peers<'s>(groups: &Groups, steps: &'s [PathStep]) -> HashMap<(Option<u32>, &'s Doing), Doing> {
    let waits = || {
        steps.iter().filter_map(|step| match &step.doing {
            Doing::Waiting(wait) => Some((step, wait)),
            Doing::Running | Doing::Woken => None,
        })
    };
    let key = |step: &PathStep, wait: &PathWait| {
        (group_of(groups, step), PathWait { object: WaitObject::None, ..wait.clone() })
    };
    let ends = Ends::new(waits().map(|(step, wait)| (key(step, wait), &wait.object)));
    let mut sums: HashMap<_, HashMap<&Doing, (u64, u64)>> = HashMap::new();
    for (step, wait) in waits() {
        if let Some(shared) = ends.shared(&key(step, wait), &wait.object) {
            let of = sums.entry(shared).or_default().entry(&step.doing).or_default();
            *of = (of.0 + 1, of.1.saturating_add(step.end_ns.0 - step.begin_ns.0));
        }
    }
    let mut peers = HashMap::new();
    for (((group, wait), address, accepted), connections) in sums {
        let one = |(doing, &(waits, ns)): (&&Doing, &(u64, u64))| match doing {
            Doing::Waiting(PathWait { object: WaitObject::File { name }, .. }) => {
                Some(Connection { name: name.clone(), waits, wait_ns: Ns(ns) })
            }
            _ => None,
        };
        let all = connections.iter().filter_map(one).collect();
        let object = WaitObject::Connections(Connections::of(address, accepted, all));
        let folded = Doing::Waiting(PathWait { object, ..wait });
        peers.extend(connections.into_keys().map(|doing| ((group, doing), folded.clone())));
    }
    peers
}

/// Adds up the steps of a path by what is done, and, if what threads `ran` is to be told apart, by that.
fn parts(groups: &Groups, steps: &[PathStep], wall: Ns, ran: Option<&Ran<'_>>) -> Vec<PathPart> {
    let peers = peers(groups, steps);
    let mut by_thread: HashMap<(u32, &Doing), Vec<(Ns, Ns)>> = HashMap::new();
    for step in steps {
        let doing = peers.get(&(group_of(groups, step), &step.doing)).unwrap_or(&step.doing);
        by_thread.entry((step.thread, doing)).or_default().push((step.begin_ns, step.end_ns));
    }
    let mut sums: HashMap<(u32, &Doing, Option<Runs>), (u64, usize)> = HashMap::new();
    for ((thread, doing), times) in by_thread {
        let Some(&group) = groups.of_thread.get(thread as usize) else { continue };
        let divided = match ran {
            Some(ran) if *doing == Doing::Running => ran.divide(thread, &times),
            _ => vec![(None, times.iter().map(|(from, to)| to.0 - from.0).sum())],
        };
        for (runs, ns) in divided.into_iter().filter(|&(_, ns)| ns > 0) {
            let sum = sums.entry((group, doing, runs)).or_default();
            *sum = (sum.0 + ns, sum.1 + times.len());
        }
    }
    let part = |((group, doing, runs), (ns, steps)): ((u32, &Doing, _), (u64, usize))| PathPart {
        group,
        doing: doing.clone(),
        runs,
        ns: Ns(ns),
        share: ns as f64 / wall.as_f64().max(1.0),
        steps,
    };
    let mut parts: Vec<PathPart> = sums.into_iter().map(part).collect();
    let place = |part: &PathPart| match &part.doing {
        Doing::Running => (0, None, None),
        Doing::Woken => (1, None, None),
        Doing::Waiting(wait) => (2, wait.api, wait.site.map(|site| site.avma)),
    };
    parts.sort_by(|a, b| {
        (b.ns, a.group, place(a), a.runs, a.steps).cmp(&(a.ns, b.group, place(b), b.runs, b.steps))
    });
    parts
}
