//! The load that the run puts on the machine as a whole: processors, processes.

use std::collections::BTreeMap;

use super::{Evidence, Finding, FindingKind};
use crate::causes::{CauseRow, Purpose};
use crate::clock::Ns;
use crate::groups::ThreadSpan;
use crate::image::Ending;
use crate::rows::ProcessRow;
use crate::stats::median;

/// From this many ready threads per processor on average, the processors are crowded.
const CROWDED: f64 = 1.5;
/// The part of the time wanting a processor that threads have to wait for it.
const SCARCE: f64 = 0.25;
/// The part of the processors' time that threads use themselves, if they are what keeps each other from running.
const THEIR_OWN: f64 = 0.8;
/// A limit that is reached in fewer periods is no cause.
const FEW_PERIODS: u64 = 3;
/// Nor one that is reached in a smaller part of them.
const OFTEN: f64 = 0.1;
/// Fewer processes are not many.
const MANY_PROCESSES: usize = 20;
/// Processes that end sooner than this are short-lived.
const SHORT_LIFE_NS: f64 = 2e8;
/// A program starts and ends within so much time on the processor: a shell, a compiler's driver. An interpreter takes longer, and has
/// work to do.
const TO_START_NS: f64 = 5e6;
/// The part of the run that short-lived processes take.
const MUCH: f64 = 0.3;

/// How much a thread wants a processor.
struct Wanting {
    thread: u32,
    on_ns: f64,
    waiting_ns: f64,
}

fn sum(all: &[Wanting], of_one: fn(&Wanting) -> f64) -> f64 {
    all.iter().map(of_one).sum()
}

/// Returns how much each of these threads wants a processor, as far as that was observed.
fn wanting(evidence: &Evidence<'_>, threads: impl Iterator<Item = u32>) -> Vec<Wanting> {
    let is_yield = |api: u32| {
        let symbol = &*evidence.analysis.apis[api as usize].symbol;
        symbol.trim_start_matches('_') == "sched_yield"
    };
    let one = |thread: u32| {
        let row = evidence.analysis.threads.get(thread as usize)?;
        // Who gives its processor to others doesn't want it back.
        let yields = row.apis.iter().filter(|one| is_yield(one.api));
        let yielded: f64 = yields.map(|one| one.preempted_ns.as_f64()).sum();
        let waiting_ns = (row.off_cpu.runnable_ns?.as_f64() - yielded).max(0.0);
        Some(Wanting { thread, on_ns: row.on_cpu_ns?.as_f64(), waiting_ns })
    };
    threads.filter_map(one).collect()
}

/// Finds why threads wait for processors: where a limit leaves them fewer than there are, that is the cause.
pub(super) fn few_processors(evidence: &Evidence<'_>) -> Option<Finding> {
    used_up_quota(evidence).or_else(|| too_many_threads(evidence))
}

/// Finds whether more threads are ready to run than there are processors, or than those that they may run on.
fn too_many_threads(evidence: &Evidence<'_>) -> Option<Finding> {
    let processors = &evidence.watched.processors;
    let machine = processors.of_machine?;
    let all = 0..evidence.analysis.threads.len() as u32;
    let fewer = processors
        .fewer()
        .into_iter()
        .map(|(set, threads)| (set.count, wanting(evidence, threads.into_iter())));
    std::iter::once((processors.count()?, wanting(evidence, all)))
        .chain(fewer)
        .filter(|(count, all)| are_crowded(evidence, *count, all))
        .max_by(|(_, a), (_, b)| sum(a, |it| it.waiting_ns).total_cmp(&sum(b, |it| it.waiting_ns)))
        .and_then(|(count, all)| {
            let (on, waiting) = (sum(&all, |it| it.on_ns), sum(&all, |it| it.waiting_ns));
            let kind = FindingKind::TooManyThreads {
                runnable: (on + waiting) / evidence.analysis.wall_ns.as_f64().max(1.0),
                processors: count,
                of_machine: machine,
                waiting_ns: Ns::from_f64(waiting),
                of_wanted: waiting / (on + waiting),
            };
            of_waiting_group(evidence, &all, 0.0, kind)
        })
}

/// Whether these threads want many more processors than there are for them.
fn are_crowded(evidence: &Evidence<'_>, processors: u64, all: &[Wanting]) -> bool {
    let (on, waiting) = (sum(all, |it| it.on_ns), sum(all, |it| it.waiting_ns));
    let runnable = (on + waiting) / evidence.analysis.wall_ns.as_f64().max(1.0);
    runnable >= CROWDED * processors as f64
        && waiting >= SCARCE * (on + waiting)
        && evidence.is_material(on)
        && own_part(evidence, processors, all) >= THEIR_OWN
}

/// The part of the processors' time that these threads have, while those live that wait for one. The rest is what others have, or nobody.
fn own_part(evidence: &Evidence<'_>, processors: u64, all: &[Wanting]) -> f64 {
    let life = |one: &Wanting| {
        let row = &evidence.analysis.threads[one.thread as usize];
        (row.start_ns, row.end_ns)
    };
    let waits = |one: &&Wanting| {
        one.waiting_ns > 0.0 && one.waiting_ns >= SCARCE * (one.on_ns + one.waiting_ns)
    };
    let lives = || all.iter().filter(waits).map(life);
    let begin = lives().map(|life| life.0).min().unwrap_or(Ns(0));
    let end = lives().map(|life| life.1).max().unwrap_or(Ns(0));
    let lived_ns = |(from, to): (Ns, Ns)| {
        let (from, to) = (from.max(begin), to.min(end));
        let ns = to.0.saturating_sub(from.0);
        Ns(ns.saturating_sub(evidence.analysis.pauses.between(from, to).0)).as_f64()
    };
    let on: f64 = all.iter().map(|one| one.on_ns.min(lived_ns(life(one)))).sum();
    on / (processors as f64 * lived_ns((begin, end))).max(1.0)
}

/// Finds whether threads wait because their control group has used up the processor time that it may use.
fn used_up_quota(evidence: &Evidence<'_>) -> Option<Finding> {
    let quota = evidence.watched.processors.quota.as_ref()?;
    if quota.spent_periods < FEW_PERIODS || quota.spent() < OFTEN {
        return None;
    }
    let everybody = || 0..evidence.analysis.threads.len() as u32;
    let seen = wanting(evidence, everybody());
    let is_seen = !seen.is_empty();
    // Without privilege, only what threads run is known. What they don't may be a wait for a processor.
    let unseen = || everybody().filter_map(|thread| not_running(evidence, thread)).collect();
    let all: Vec<Wanting> = if is_seen { seen } else { unseen() };
    let (on, waiting) = (sum(&all, |it| it.on_ns), sum(&all, |it| it.waiting_ns));
    let most = |one: &Wanting| if is_seen { one.waiting_ns } else { one.on_ns };
    let longest = all.iter().max_by(|a, b| most(a).total_cmp(&most(b)))?;
    let row = &evidence.analysis.threads[longest.thread as usize];
    // Without the limit, this one would have to wait as well, if there is more to do than the processors can.
    let lived_ns = row.lifetime_ns.as_f64();
    let machine = evidence.watched.processors.count().unwrap_or(1).max(1);
    let least_ns = (lived_ns - longest.waiting_ns).max(on / machine as f64);
    let saves_ns = (lived_ns - least_ns).min(longest.waiting_ns).min(quota.waited_ns as f64);
    if !evidence.is_material(saves_ns) {
        return None;
    }
    let kind = FindingKind::UsedUpQuota {
        processors: quota.processors,
        control_group: quota.group.clone(),
        periods: quota.periods,
        used_up_in: quota.spent_periods,
        waiting_ns: is_seen.then_some(Ns::from_f64(waiting)),
        of_wanted: is_seen.then_some(waiting / (on + waiting).max(1.0)),
    };
    if is_seen {
        return of_waiting_group(evidence, &all, saves_ns, kind);
    }
    let group = *evidence.groups.of_thread.get(longest.thread as usize)?;
    Some(evidence.finding(group, vec![longest.thread], None, saves_ns, kind))
}

/// A thread that may want a processor whenever it has none.
fn not_running(evidence: &Evidence<'_>, thread: u32) -> Option<Wanting> {
    let row = evidence.analysis.threads.get(thread as usize)?;
    let on_ns = row.on_cpu_ns?.as_f64();
    let waiting_ns = (row.lifetime_ns.as_f64() - on_ns).max(0.0);
    Some(Wanting { thread, on_ns, waiting_ns })
}

/// A finding about the group whose threads wait longest for a processor.
fn of_waiting_group(
    evidence: &Evidence<'_>,
    all: &[Wanting],
    saves_ns: f64,
    kind: FindingKind,
) -> Option<Finding> {
    let mut by_group = BTreeMap::<u32, f64>::new();
    for one in all {
        let group = *evidence.groups.of_thread.get(one.thread as usize)?;
        *by_group.entry(group).or_default() += one.waiting_ns;
    }
    let (&group, _) = by_group.iter().max_by(|a, b| a.1.total_cmp(b.1))?;
    let threads = evidence.groups.rows[group as usize].members.clone();
    Some(evidence.finding(group, threads, None, saves_ns, kind))
}

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
    let saves_ns = if is_watched { awaited_ns(evidence, &all) } else { all_ns }.min(wall);
    let saves_ns = (saves_ns - waited_ns(evidence, &all, all_ns)).max(0.0);
    let saves_ns = saves_ns * (1.0 - work(evidence, &all));
    if saves_ns < MUCH * wall || !evidence.is_material(saves_ns) {
        return None;
    }
    let root = (0..processes.len()).find(|&at| processes[at].parent.is_none())?;
    let main = evidence.analysis.threads.iter().position(|row| row.process == root)?;
    let group = *evidence.groups.of_thread.get(main)?;
    let kind = FindingKind::ShortProcesses {
        processes: began.len(),
        program: program.to_owned(),
        of_program,
        forks,
        median_ns: Ns::from_f64(median(&mut lives)),
        all_ns: Ns::from_f64(all_ns),
    };
    Some(evidence.finding(group, vec![main as u32], None, saves_ns, kind))
}

/// Returns which part of the time that these processes have the processor for is work: what a program runs beyond what it takes to
/// start one would have to be done without it, too.
fn work(evidence: &Evidence<'_>, processes: &[usize]) -> f64 {
    let mut on_cpu = BTreeMap::<usize, f64>::new();
    for row in &evidence.analysis.threads {
        if processes.binary_search(&row.process).is_ok() {
            *on_cpu.entry(row.process).or_default() += row.on_cpu_ns.map_or(0.0, Ns::as_f64);
        }
    }
    let all: f64 = on_cpu.values().sum();
    let work: f64 = on_cpu.values().map(|ns| (ns - TO_START_NS).max(0.0)).sum();
    work / all.max(1.0)
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
