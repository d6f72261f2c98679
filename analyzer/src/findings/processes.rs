//! Processes that live for a short time: how much of the run they take, and who starts them.

use std::collections::BTreeMap;

use super::{Evidence, Finding, FindingKind};
use crate::analysis::Analysis;
use crate::causes::{CauseRow, Purpose};
use crate::clock::Ns;
use crate::groups::ThreadSpan;
use crate::image::Ending;
use crate::rows::ProcessRow;
use crate::stats::median;

/// Fewer processes are not many.
const MANY_PROCESSES: usize = 20;
/// Processes that end sooner than this are short-lived.
const SHORT_LIFE_NS: f64 = 2e8;
/// A program starts and ends within so much time on the processor: a shell, a compiler's driver. An interpreter takes longer, and has
/// work to do.
const TO_START_NS: f64 = 5e6;
/// Functions that start processes.
const STARTS: &[&str] = &[
    "popen",
    "system",
    "posix_spawn",
    "posix_spawnp",
    "fork",
    "Fork",
    "vfork",
    "forkpty",
    "clone",
    "clone3",
    "wordexp",
    "IO_popen",
    "libc_fork",
    "libc_system",
];
/// The part of the run that short-lived processes take.
const MUCH: f64 = 0.3;

/// Finds many processes that begin and end one after the other.
pub(super) fn short_processes(evidence: &Evidence<'_>) -> Option<Finding> {
    let processes = &evidence.analysis.processes;
    let short = |&at: &usize| {
        let row = &processes[at];
        row.parent.is_some() && row.wall_ns.as_f64() <= SHORT_LIFE_NS
    };
    let all: Vec<usize> = (0..processes.len()).filter(short).collect();
    // An image that began by a fork and was replaced by an exec is the beginning of the next image. One that runs no program is
    // a subshell, or what a program forks for itself.
    let (forks, began): (Vec<usize>, Vec<usize>) =
        all.iter().partition(|&&at| processes[at].forked);
    let forks = forks.iter().filter(|&&at| !matches!(processes[at].ending, Ending::Exec)).count();
    if began.len() < MANY_PROCESSES {
        return None;
    }
    let mut by_program = BTreeMap::<&str, (usize, u64)>::new();
    for row in began.iter().map(|&at| &processes[at]) {
        let (count, ns) = by_program.entry(&row.program).or_default();
        *count += 1;
        *ns = ns.saturating_add(row.wall_ns.0);
    }
    let (program, (of_program, _)) = by_program.into_iter().max_by_key(|&(_, most)| most)?;
    let mut lives: Vec<f64> = began.iter().map(|&at| processes[at].wall_ns.as_f64()).collect();
    let wall = evidence.analysis.wall_ns.as_f64();
    let all_ns = lived_ns(all.iter().map(|&at| &processes[at]));
    // What nobody waits for takes nobody's time.
    let is_watched = !evidence.watched.causes.is_empty();
    let taken_ns = if is_watched { awaited_ns(evidence, &all) } else { all_ns }.min(wall);
    let taken_ns = (taken_ns - waited_ns(evidence, &all, all_ns)).max(0.0);
    let spent = Spent::by(evidence, &all);
    let saves_ns = taken_ns * (1.0 - spent.own - spent.work).max(0.0);
    // (What chase takes in them makes the run longer, too.)
    if taken_ns * (1.0 - spent.work) < MUCH * wall || !evidence.is_material(saves_ns) {
        return None;
    }
    let root = (0..processes.len()).find(|&at| processes[at].parent.is_none())?;
    let starter = starter(evidence, &all, root);
    let main = evidence.analysis.threads.iter().position(|row| row.process == starter)? as u32;
    let (thread, api) = started_by(evidence, &all, starter).unzip();
    let thread = thread.unwrap_or(main);
    let group = *evidence.groups.of_thread.get(thread as usize)?;
    let kind = FindingKind::ShortProcesses {
        processes: began.len(),
        program: program.to_owned(),
        of_program,
        forks,
        median_ns: Ns::from_f64(median(&mut lives)),
        all_ns: Ns::from_f64(all_ns),
        own: spent.own,
    };
    Some(evidence.finding(group, vec![thread], api, saves_ns, kind))
}

/// What the time is spent on that processes have the processor for, as parts of it.
struct Spent {
    /// Chase's own cost, as far as it is measured.
    own: f64,
    /// Work: what a program runs beyond what it takes to start one would have to be done without it, too.
    work: f64,
}

impl Spent {
    fn by(evidence: &Evidence<'_>, processes: &[usize]) -> Self {
        // Of each process: its time on the processor, the part of that since it is recorded, and the part that is chase's.
        let mut times = BTreeMap::<usize, (f64, f64, f64)>::new();
        for row in &evidence.analysis.threads {
            if processes.binary_search(&row.process).is_ok() {
                let recorded = row.on_cpu_ns.map_or(0.0, Ns::as_f64);
                let (all, since, own) = times.entry(row.process).or_default();
                // (As long as it lives, at most, where it is not known.)
                *all += row.ran_ns.unwrap_or(row.lifetime_ns).as_f64().max(recorded);
                *since += recorded;
                *own += row.own_cost_ns.0.saturating_sub(row.own_wait_ns.0) as f64;
            }
        }
        for (&process, (all, _, own)) in &mut times {
            let beside = evidence.analysis.beside_calls.get(process);
            *own = (*own + beside.map_or(0.0, |ns| ns.as_f64())).min(*all);
        }
        let all: f64 = times.values().map(|(all, ..)| all).sum();
        let own: f64 = times.values().map(|(.., own)| own).sum();
        let work = times.values().map(|(all, since, own)| since.min(all - own) - TO_START_NS);
        let work: f64 = work.map(|ns| ns.max(0.0)).sum();
        Self { own: own / all.max(1.0), work: work / all.max(1.0) }
    }
}

/// Returns the process that most of these descend from, and which is none of them; `root` if none is.
fn starter(evidence: &Evidence<'_>, all: &[usize], root: usize) -> usize {
    let processes = &evidence.analysis.processes;
    let mut counts = BTreeMap::<usize, usize>::new();
    for &at in all {
        let mut around = std::iter::successors(Some(at), |&at| processes[at].parent);
        if let Some(by) = around.find(|at| all.binary_search(at).is_err()) {
            *counts.entry(by).or_default() += 1;
        }
    }
    counts.into_iter().max_by_key(|&(_, count)| count).map_or(root, |(by, _)| by)
}

/// Returns the thread that starts most of the processes that its process starts, and by which function, if that is known.
fn started_by(evidence: &Evidence<'_>, all: &[usize], starter: usize) -> Option<(u32, u32)> {
    let Analysis { processes, threads, apis, .. } = evidence.analysis;
    let started = all.iter().filter(|&&at| processes[at].parent == Some(starter)).count();
    let of_starter = (0..).zip(threads).filter(|(_, row)| row.process == starter);
    let calls = of_starter.flat_map(|(thread, row)| {
        let starts = row.apis.iter().filter(|one| {
            let symbol = &*apis[one.api as usize].symbol;
            STARTS.contains(&symbol.trim_start_matches('_'))
        });
        starts.map(move |one| (one.calls, thread, one.api)).collect::<Vec<_>>()
    });
    let (calls, thread, api) = calls.max_by_key(|&(calls, ..)| calls)?;
    (2 * calls >= started as u64).then_some((thread, api))
}

/// Returns how much of the time in which these processes live they wait themselves, for time, input, another machine: they would have to
/// without being processes, too. That they wait for each other is none of it, nor are pages, which it takes to start. `lived_ns` is that time.
fn waited_ns(evidence: &Evidence<'_>, processes: &[usize], lived_ns: f64) -> f64 {
    let is_short = |span: &ThreadSpan| {
        let row = evidence.analysis.threads.get(span.thread as usize);
        row.is_some_and(|row| processes.binary_search(&row.process).is_ok())
    };
    let is_own = |row: &&CauseRow| {
        use Purpose::{Child, MemoryMap, Other, Page};
        !matches!(row.purpose, Child | Page | MemoryMap | Other)
    };
    let waited = evidence.watched.causes.iter().filter(is_own).map(|row| {
        let ended = row.wakers.iter().flat_map(|waker| &waker.by_thread);
        let by_short: f64 = ended.filter(|span| is_short(span)).map(|span| span.ns.as_f64()).sum();
        let by_others = 1.0 - (by_short / row.wait_ns.as_f64().max(1.0)).min(1.0);
        let of_short = row.by_thread.iter().filter(|span| is_short(span));
        by_others * of_short.map(|span| span.ns.as_f64()).sum::<f64>()
    });
    let lives = processes.iter().map(|&at| evidence.analysis.processes[at].wall_ns.as_f64());
    // (Several may wait at once.)
    waited.sum::<f64>() * (lived_ns / lives.sum::<f64>().max(1.0)).min(1.0)
}

/// Returns for how long at least one of these processes lives: a shell that runs others lives as long as they do.
fn lived_ns<'a>(processes: impl Iterator<Item = &'a ProcessRow>) -> f64 {
    let mut lives: Vec<(u64, u64)> = processes
        .map(|row| (row.start_ns.0, row.start_ns.0.saturating_add(row.wall_ns.0)))
        .collect();
    lives.sort_unstable();
    let (mut sum, mut until) = (0, 0);
    for (begin, end) in lives {
        sum += end.saturating_sub(begin.max(until));
        until = until.max(end);
    }
    Ns(sum).as_f64()
}

/// Whether a limiting stage is made of processes that live for a short time.
pub(super) fn is_of_short_processes(evidence: &Evidence<'_>, stage: &Finding) -> bool {
    let is_short = |&thread: &u32| {
        let row = &evidence.analysis.processes[evidence.analysis.threads[thread as usize].process];
        row.parent.is_some() && row.wall_ns.as_f64() <= SHORT_LIFE_NS
    };
    let members = &evidence.groups.rows[stage.group as usize].members;
    matches!(stage.kind, FindingKind::LimitingStage { .. }) && members.iter().all(is_short)
}

/// Returns the time of the thread that waits longest for these processes: for their ends, or for their output. This is
/// more than their recorded lifetimes, which lack the time before the hook is loaded and while the kernel destroys
/// them.
fn awaited_ns(evidence: &Evidence<'_>, processes: &[usize]) -> f64 {
    let process_of = |thread: u32| {
        let row = evidence.analysis.threads.get(thread as usize)?;
        Some(row.process)
    };
    let is_short = |span: &ThreadSpan| {
        process_of(span.thread).is_some_and(|at| processes.binary_search(&at).is_ok())
    };
    let mut sums = BTreeMap::<u32, f64>::new();
    for row in &evidence.watched.causes {
        let spans = row.wakers.iter().flat_map(|waker| &waker.by_thread);
        let ended_by = |short: bool| {
            let spans = spans.clone().filter(|span| is_short(span) == short);
            spans.map(|span| span.ns.as_f64()).sum::<f64>() / row.wait_ns.as_f64().max(1.0)
        };
        let part = match row.purpose {
            // Of children that are not recorded, nothing tells that they lived for longer.
            Purpose::Child => 1.0 - ended_by(false).min(1.0),
            _ => ended_by(true),
        };
        for span in row.by_thread.iter().filter(|span| !is_short(span)) {
            *sums.entry(span.thread).or_default() += part.min(1.0) * span.ns.as_f64();
        }
    }
    sums.into_values().fold(0.0, f64::max)
}
