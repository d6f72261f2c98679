//! Work that is divided unevenly: while one thread of a group still works, the others wait for more to do, and somebody waits for all of it.
//!
//! Work is shared by the threads of a group that are in one process, or by the processes that one process has forked: a *pool*. A *batch* is
//! the time from when the first thread of the pool has something to do until none has. A thread has nothing to do while it waits for a
//! condition, or for what others hand over, for a millisecond or more, or when it has ended, where threads are started for each batch; waiting
//! for a lock, a file or a processor is part of what it does. Who waits in an event loop has nothing to do either, but need not get any of this
//! work: that is no sign that work is divided unevenly. In a batch, a thread is *alone* while it is the only one that works. That counts if
//! several worked at the same time before or after that, so that there was work for several, and if meanwhile a thread outside of the group
//! waits for one of the pool. Threads of a runtime's scheduler (Go's) share its tasks as these come, and those of Ruby run it one at a time.

mod awaited;
mod fed;
mod loops;
mod servers;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use serde::Serialize;

use crate::analysis::Analysis;
use crate::causes::{CauseRow, LockKey, NamingPlaces, PathWait, Run, lock_key};
use crate::clock::Ns;
use crate::event_loops::{RanLate, WaitInTurns};
use crate::groups::Groups;
use crate::image::Image;
use crate::long_waits::{LongWait, OffCpuTimes};
use crate::spans::{Span, common_ns, parts_of};
use crate::wait_causes::is_of_ruby;
use awaited::{Awaited, AwaitedIn, PoolKey, awaited, key_of};
use loops::is_of_loop;

/// Shorter times alone come from handing work over.
const NOTICED_NS: u64 = 5_000_000;
/// Several threads work at once in at least this part of a batch that was work for several.
const SHARED: f64 = 0.05;
/// Threads that are started for each batch, and end with it, have at least so many.
const ROUNDS: usize = 2;

/// The uneven batches of a group's threads in one process.
#[derive(Clone, Debug, Serialize)]
pub struct UnevenWork {
    /// The group, by number in [`Groups::rows`].
    pub group: u32,
    /// How often several threads worked, and then one alone: a batch may follow another one without a pause.
    pub batches: u64,
    /// Whether some of these followed each other without a pause: where one ends, is told by how long several threads worked in between.
    pub batches_are_estimate: bool,
    /// The total time of these batches, as far as somebody waited for them.
    pub all_ns: Ns,
    /// The part of it in which one thread was alone and had a processor.
    pub alone_ns: Ns,
    /// How much sooner the batches would have been done if what was done alone had been divided over all threads that had a part in the
    /// batch; what ran, over no more of them than there are processors.
    pub loss_ns: Ns,
    /// The number of others that had nothing to do, in the longest of these times.
    pub parked: usize,
    /// The threads that were alone, and how long, longest first; by number in [`Analysis::threads`].
    #[serde(skip)]
    pub by_thread: Vec<(u32, Ns)>,
    /// Where the others wait longest meanwhile.
    #[serde(skip)]
    pub wait: Option<PathWait>,
    /// What the threads that were alone waited for then: a file, a lock, time.
    #[serde(skip)]
    pub own_waits: Vec<WaitInTurns>,
    /// The group of the thread that waits for them, by number in [`Groups::rows`].
    pub waiting: u32,
    /// The process, by number in [`Analysis::processes`]. The following addresses are valid in it.
    #[serde(skip)]
    pub process: usize,
    /// What the thread that was alone for longest ran more than the others, by address, most samples first.
    #[serde(skip)]
    pub ran: Vec<RanLate>,
}

/// Finds uneven batches. `threads` are the long waits of `analysis`, `causes` are all its waits, and it may use so many `processors`.
pub(crate) fn uneven_work(
    images: &[Image],
    analysis: &Analysis,
    groups: &Groups,
    naming: &dyn NamingPlaces,
    causes: &[CauseRow],
    threads: &[OffCpuTimes],
    processors: Option<u64>,
) -> Vec<UnevenWork> {
    let locks: HashSet<LockKey> = causes
        .iter()
        .filter(|row| row.purpose.is_lock())
        .filter_map(|row| lock_key(&row.object, row.process))
        .collect();
    let mut awaited = awaited(analysis, groups, threads);
    let mut members: BTreeMap<PoolKey, Vec<u32>> = BTreeMap::new();
    for thread in 0..analysis.threads.len() as u32 {
        let shares = |&(group, _): &PoolKey| {
            let row = &groups.rows[group as usize];
            let is_of_ruby = is_of_ruby(&analysis.threads[thread as usize], &analysis.objects);
            !(row.takes_any_task || row.is_unknown || is_of_ruby)
        };
        if let Some(key) = key_of(analysis, groups, thread).filter(shares) {
            members.entry(key).or_default().push(thread);
        }
    }
    let pools = members.into_iter().filter(|(_, members)| members.len() > 1);
    let uneven = |(key, members)| {
        let awaited = awaited.remove(&key)?;
        let pool = Pool { key, members, awaited, analysis, threads, locks: &locks };
        let one = pool.uneven(processors.unwrap_or(u64::MAX))?;
        Some((pool, one))
    };
    let mut found: Vec<(Pool<'_>, UnevenWork)> = pools.filter_map(uneven).collect();
    if !found.is_empty() {
        let run = Run::new(images, analysis, groups, naming);
        for (pool, one) in &mut found {
            one.ran = pool.ran(&run, images, one);
        }
    }
    found.into_iter().map(|(_, one)| one).collect()
}

/// The threads of a group that are in one process.
struct Pool<'a> {
    key: PoolKey,
    /// In ascending order.
    members: Vec<u32>,
    awaited: Awaited,
    analysis: &'a Analysis,
    threads: &'a [OffCpuTimes],
    locks: &'a HashSet<LockKey>,
}

/// Time in which one thread works alone.
struct Alone {
    thread: u32,
    span: Span,
    /// The number of others that wait for something to do.
    parked: usize,
    /// How long several threads have worked at once in the batch until then.
    shared_before_ns: u64,
    /// Whether the others do not wait, but have ended.
    is_last: bool,
}

/// What a thread does from then on. (Of several events at one time, those that end something come first.)
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Now {
    Gone,
    Parked,
    /// It waits in its event loop, or while other threads of its process work.
    Elsewhere,
    Works,
}

/// From when the first thread works until none does.
#[derive(Default)]
struct Batch {
    begin: u64,
    end: u64,
    shared_ns: u64,
    alone: Vec<Alone>,
    workers: HashSet<u32>,
    /// Those that began and ended within it.
    ended: usize,
}

impl Pool<'_> {
    fn uneven(&self, processors: u64) -> Option<UnevenWork> {
        let mut by_thread: BTreeMap<u32, u64> = BTreeMap::new();
        let (mut batches, mut all_ns, mut alone_ns, mut loss_ns) = (0, 0u64, 0u64, 0.0);
        let mut batches_are_estimate = false;
        let mut longest = (0, 0);
        let mut alone_spans: Vec<(u32, Span)> = Vec::new();
        let mut waiting: BTreeMap<u32, u64> = BTreeMap::new();
        let idle_at = self.idle_at();
        let mut all_batches = self.batches();
        // Threads that are started together once, and end one after the other, are told as that; those of a pool end with it.
        if all_batches.iter().filter(|batch| batch.ended > 0).count() < ROUNDS {
            for batch in &mut all_batches {
                batch.alone.retain(|alone| !alone.is_last);
            }
        }
        for batch in all_batches {
            if (batch.shared_ns as f64) < SHARED * (batch.end - batch.begin) as f64 {
                continue;
            }
            all_ns +=
                self.awaited_in((batch.begin, batch.end)).map(|(_, part)| ns(part)).sum::<u64>();
            let mut held_up = self.held_up_ns(&batch);
            let had_part = batch.workers.len() as u64;
            let mut shared_before_last = None;
            let batches_before = batches;
            let long = batch.alone.iter().filter(|alone| ns(alone.span) >= NOTICED_NS);
            for &Alone { thread, span, parked, shared_before_ns, is_last } in long {
                if self.is_paced(thread, span) || self.feeds(thread, span, &idle_at) {
                    continue;
                }
                let held_up_ns = held_up.entry(thread).or_default();
                if is_last {
                    *held_up_ns =
                        (*held_up_ns).min(ns(span) - self.ran_more_ns(&batch, thread, span));
                }
                let (mut counted_ns, mut waited_ns) = (0, 0);
                // (Of threads that end with the batch, somebody waits for the last one.)
                let awaited = self.awaited_in(span);
                let awaited = awaited.filter(|(one, _)| !is_last || one.for_thread == thread);
                for (AwaitedIn { by, .. }, part) in awaited {
                    let not_counted = ns(part).min(*held_up_ns);
                    *held_up_ns -= not_counted;
                    let left = ns(part) - not_counted;
                    if left > 0 {
                        counted_ns += left;
                        waited_ns += common_ns(&self.own_waits(thread), part).min(left);
                        *waiting.entry(*by).or_default() += left;
                        alone_spans.push((thread, part));
                    }
                }
                if counted_ns == 0 {
                    continue;
                }
                let shared_ns = shared_before_last.map(|last| shared_before_ns - last);
                if shared_ns.is_none_or(|ns| ns as f64 >= SHARED * counted_ns as f64) {
                    batches += 1;
                    shared_before_last = Some(shared_before_ns);
                }
                let parts = had_part.min(parked as u64 + 1).max(1);
                let gained = |ns: u64, parts: u64| ns as f64 * (1.0 - 1.0 / parts as f64);
                alone_ns += counted_ns;
                // Any number of threads can wait at once, but not run.
                loss_ns += gained(waited_ns, parts)
                    + gained(counted_ns - waited_ns, parts.min(processors.max(1)));
                longest = longest.max((counted_ns, parked));
                *by_thread.entry(thread).or_default() += counted_ns;
            }
            batches_are_estimate |= batches > batches_before + 1;
        }
        let (&waiting, _) = waiting.iter().max_by_key(|(_, ns)| **ns)?;
        let mut by_thread: Vec<(u32, Ns)> =
            by_thread.into_iter().map(|(thread, ns)| (thread, Ns(ns))).collect();
        by_thread.sort_by_key(|&(thread, ns)| (std::cmp::Reverse(ns), thread));
        let alone_longest = by_thread.first()?.0;
        let others_idle = |is_alone: bool, wait: &PathWait| !is_alone && self.is_idle(wait);
        let own = |is_alone: bool, wait: &PathWait| is_alone && !self.is_idle(wait);
        Some(UnevenWork {
            group: self.key.0,
            batches,
            batches_are_estimate,
            all_ns: Ns(all_ns),
            alone_ns: Ns(alone_ns),
            loss_ns: Ns::from_f64(loss_ns),
            parked: longest.1,
            by_thread,
            wait: self
                .waits_in(&alone_spans, &self.members, others_idle)
                .into_iter()
                .next()
                .map(|row| row.wait),
            own_waits: self.waits_in(&alone_spans, &self.members, own),
            waiting,
            process: self.analysis.threads[alone_longest as usize].process,
            ran: Vec::new(),
        })
    }

    /// Returns for how much longer than they did on average others had the processor of each thread of a batch: that is not because of
    /// how the work was divided.
    fn held_up_ns(&self, batch: &Batch) -> HashMap<u32, u64> {
        let preempted_ns = |thread: u32| -> u64 {
            common_ns(&self.threads[thread as usize].preempted, (batch.begin, batch.end))
        };
        let each: Vec<(u32, u64)> =
            batch.workers.iter().map(|&thread| (thread, preempted_ns(thread))).collect();
        let all: u64 = each.iter().map(|(_, ns)| ns).sum();
        let others = (each.len() as u64).saturating_sub(1).max(1);
        let more = |(thread, ns): (u32, u64)| (thread, ns.saturating_sub((all - ns) / others));
        each.into_iter().map(more).collect()
    }

    /// Returns how much of a span is of what a thread that lived for a batch ran more than the others did on average: that is how the work
    /// was divided, whoever had the processor meanwhile.
    fn ran_more_ns(&self, batch: &Batch, thread: u32, span: Span) -> u64 {
        let ran =
            |thread: u32| self.analysis.threads[thread as usize].on_cpu_ns.unwrap_or_default().0;
        let others = batch.workers.iter().filter(|&&other| other != thread);
        let (count, all) =
            others.fold((0, 0), |(count, all), &other| (count + 1, all + ran(other)));
        let more = ran(thread).saturating_sub(all / u64::max(count, 1));
        more.min(ns(span) - common_ns(&self.threads[thread as usize].preempted, span).min(ns(span)))
    }

    /// Whether the others wait meanwhile for a thread that is not of the pool, and is at work: they are kept waiting by that one.
    fn is_paced(&self, alone: u32, span: Span) -> bool {
        let (mut all_ns, mut paced_ns) = (0_u64, 0_u64);
        for &member in self.members.iter().filter(|&&member| member != alone) {
            let waits = &self.threads[member as usize].waits;
            for (wait, part) in parts_of(waits, |wait| (wait.begin_ns, woken(wait)), span) {
                if !self.is_idle(&wait.wait) {
                    continue;
                }
                all_ns += ns(part);
                let outside = |waker: &u32| self.members.binary_search(waker).is_err();
                let Some(waker) = wait.waker.filter(outside) else { continue };
                let its_waits = &self.threads[waker as usize].waits;
                let waiting = parts_of(its_waits, |wait| (wait.begin_ns, woken(wait)), part);
                let waiting_ns: u64 = waiting.map(|(_, part)| ns(part)).sum();
                if waiting_ns < ns(part) / 2 {
                    paced_ns += ns(part);
                }
            }
        }
        paced_ns > all_ns / 2
    }

    /// Returns when a thread of the pool waits though it has something to do, in order.
    fn own_waits(&self, thread: u32) -> Vec<Span> {
        let waits = self.threads[thread as usize].waits.iter();
        let own = waits.filter(|wait| !self.is_idle(&wait.wait) && !is_of_loop(wait));
        own.map(|wait| (wait.begin_ns, woken(wait))).collect()
    }

    /// Returns whether a thread of the pool has nothing to do in this wait.
    fn is_idle(&self, wait: &PathWait) -> bool {
        wait.purpose.is_handover()
            && lock_key(&wait.object, wait.process).is_none_or(|key| !self.locks.contains(&key))
    }

    /// Returns who waits for the pool in a span, and when.
    fn awaited_in(&self, span: Span) -> impl Iterator<Item = (&AwaitedIn, Span)> {
        parts_of(&self.awaited, |one| one.span, span)
    }

    fn batches(&self) -> Vec<Batch> {
        let mut events: Vec<(u64, Now, u32)> = Vec::new();
        let beside = self.beside();
        let serves = |member: u32, wait: &LongWait| {
            let others = beside.get(&member).map_or(&[][..], Vec::as_slice);
            self.works_beside(others, (wait.begin_ns, woken(wait)))
        };
        for &member in &self.members {
            let row = &self.analysis.threads[member as usize];
            let mut at = row.start_ns.0;
            for wait in &self.threads[member as usize].waits {
                let now = match self.is_idle(&wait.wait) {
                    true if serves(member, wait) => Now::Elsewhere,
                    true => Now::Parked,
                    false if is_of_loop(wait) => Now::Elsewhere,
                    false => continue,
                };
                if wait.begin_ns >= at {
                    if at < wait.begin_ns {
                        events.push((at, Now::Works, member));
                    }
                    events.push((wait.begin_ns, now, member));
                    at = woken(wait);
                }
            }
            // (Who is parked until the end works no more.)
            if at < row.end_ns.0 {
                events.push((at, Now::Works, member));
            }
            events.push((row.end_ns.0, Now::Gone, member));
        }
        events.sort_unstable();
        let mut batches: Vec<Batch> = Vec::new();
        let (mut working, mut parked) = (BTreeSet::new(), BTreeSet::new());
        let mut since = 0;
        for (at, now, thread) in events {
            if let (Some(batch), true) = (batches.last_mut(), since < at) {
                match working.len() {
                    0 => {}
                    1 if !parked.is_empty() => {
                        let alone = |&thread| Alone {
                            thread,
                            span: (since, at),
                            parked: parked.len(),
                            shared_before_ns: batch.shared_ns,
                            is_last: false,
                        };
                        batch.alone.extend(working.iter().map(alone));
                    }
                    1 if batch.ended > 0 => {
                        let alone = |&thread| Alone {
                            thread,
                            span: (since, at),
                            parked: batch.ended,
                            shared_before_ns: batch.shared_ns,
                            is_last: true,
                        };
                        batch.alone.extend(working.iter().map(alone));
                    }
                    1 => {}
                    _ => batch.shared_ns += at - since,
                }
            }
            since = at;
            let worked = working.remove(&thread);
            parked.remove(&thread);
            match now {
                Now::Works => {
                    // (One that parks when another begins is one batch with it.)
                    if working.is_empty() && batches.last().is_none_or(|batch| batch.end < at) {
                        batches.push(Batch { begin: at, ..Batch::default() });
                    }
                    working.insert(thread);
                    if let Some(batch) = batches.last_mut() {
                        batch.workers.insert(thread);
                    }
                }
                Now::Parked => _ = parked.insert(thread),
                Now::Elsewhere => {}
                Now::Gone => {
                    let began = self.analysis.threads[thread as usize].start_ns.0;
                    if let Some(batch) = batches.last_mut().filter(|batch| batch.begin <= began) {
                        batch.ended += usize::from(worked);
                    }
                }
            }
            if let Some(batch) = batches.last_mut().filter(|_| worked && now != Now::Works) {
                batch.end = at;
            }
        }
        batches
    }

    /// Returns the process that stands for all of the pool.
    fn process_of_waits(&self, wait: &PathWait) -> usize {
        let first = self.members.first();
        first.map_or(wait.process, |&first| self.analysis.threads[first as usize].process)
    }

    /// Returns the waits of threads in times in which one was alone, longest first: those that are `wanted`, by whether the thread is the one
    /// that was alone, and by what was waited for.
    fn waits_in(
        &self,
        alone: &[(u32, Span)],
        threads: &[u32],
        wanted: impl Fn(bool, &PathWait) -> bool,
    ) -> Vec<WaitInTurns> {
        let mut sums: HashMap<PathWait, u64> = HashMap::new();
        for &member in threads {
            for wait in &self.threads[member as usize].waits {
                let span = (wait.begin_ns, woken(wait));
                for (&(thread, _), part) in parts_of(alone, |&(_, span)| span, span) {
                    if ns(part) > 0 && wanted(thread == member, &wait.wait) {
                        // (Forks have the same at the same addresses.)
                        let process = self.process_of_waits(&wait.wait);
                        let same = PathWait { process, ..wait.wait.clone() };
                        *sums.entry(same).or_default() += ns(part);
                    }
                }
            }
        }
        let row = |(wait, ns): (PathWait, u64)| WaitInTurns { wait, ns: Ns(ns) };
        let mut rows: Vec<WaitInTurns> = sums.into_iter().map(row).collect();
        rows.sort_by_key(|row| {
            (std::cmp::Reverse(row.ns), row.wait.api, row.wait.site.map(|site| site.avma))
        });
        rows
    }

    /// Returns what the thread that was alone for longest ran more often than the others did on average.
    fn ran(&self, run: &Run<'_>, images: &[Image], one: &UnevenWork) -> Vec<RanLate> {
        let Some(&(alone, _)) = one.by_thread.first() else { return Vec::new() };
        let process_of = |&member: &u32| self.analysis.threads[member as usize].process;
        let processes: BTreeSet<usize> = self.members.iter().map(process_of).collect();
        let files = processes
            .into_iter()
            .filter_map(|process| Some((process, images.get(process)?.syscalls.as_ref()?)));
        // (Forks have what they run at the same addresses.)
        let mut sums: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
        for (process, row) in files.flat_map(|(at, file)| file.samples().map(move |row| (at, row)))
        {
            let (Some(thread), _) = run.place(process, row.context_ref, row.tid) else { continue };
            let (own, others) = sums.entry(row.address).or_default();
            let samples = u64::from(row.user) + u64::from(row.kernel);
            if thread == alone {
                *own += samples;
            } else if self.members.binary_search(&thread).is_ok() {
                *others += samples;
            }
        }
        let others = (self.members.len() as u64).saturating_sub(1).max(1);
        let more = sums.into_iter().filter_map(|(avma, (own, sum))| {
            let samples = own.saturating_sub(sum.div_ceil(others));
            let address = run.address(one.process, avma).filter(|_| samples > 0)?;
            Some(RanLate { address, samples })
        });
        let mut ran: Vec<RanLate> = more.collect();
        ran.sort_by_key(|row| (std::cmp::Reverse(row.samples), row.address.avma));
        ran
    }
}

fn woken(wait: &LongWait) -> u64 {
    wait.woken_ns
        .filter(|woken| (wait.begin_ns..=wait.end_ns).contains(woken))
        .unwrap_or(wait.end_ns)
}

fn ns(span: Span) -> u64 {
    span.1.saturating_sub(span.0)
}
