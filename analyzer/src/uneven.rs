//! Work that is divided unevenly: while one thread of a group still works, the others wait for more to do, and somebody waits for all of it.
//!
//! A *batch* is the time from when the first thread of the group has something to do until none has. A thread has nothing to do while
//! it waits for a condition, or for what others hand over, for a millisecond or more; waiting for a lock, a file or a processor is
//! part of what it does. In a batch, a thread is *alone* while it is the only one that works. That counts if several worked
//! at the same time before or after that, so that there was work for several, and if meanwhile a thread outside of the group
//! waits for one of the group.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use chase_recorder::syscalls::SampleRow;
use serde::Serialize;

use crate::analysis::Analysis;
use crate::causes::{CauseRow, LockKey, NamingPlaces, PathWait, Purpose, Run, lock_key};
use crate::clock::Ns;
use crate::event_loops::{RanLate, WaitInTurns};
use crate::groups::Groups;
use crate::image::Image;
use crate::long_waits::{LongWait, OffCpuTimes};

/// Shorter times alone come from handing work over.
const NOTICED_NS: u64 = 5_000_000;
/// Several threads work at once in at least this part of a batch that was work for several.
const SHARED: f64 = 0.05;

/// The uneven batches of a group.
#[derive(Clone, Debug, Serialize)]
pub struct UnevenWork {
    /// The group, by number in [`Groups::rows`].
    pub group: u32,
    /// The number of batches in which one thread was alone.
    pub batches: u64,
    /// Their total time, as far as somebody waited for them.
    pub all_ns: Ns,
    /// The part of it in which one thread was alone and had a processor.
    pub alone_ns: Ns,
    /// How much sooner the batches would have been done if what was done alone had been divided over all threads that had a part in the
    /// batch, or over the processors.
    pub loss_ns: Ns,
    /// The threads that were alone, and how long, longest first; by number in [`Analysis::threads`].
    #[serde(skip)]
    pub by_thread: Vec<(u32, Ns)>,
    /// Where the others wait longest meanwhile.
    #[serde(skip)]
    pub wait: Option<PathWait>,
    /// What the thread that was alone for longest waited for then: a file, a lock, time.
    #[serde(skip)]
    pub own_waits: Vec<WaitInTurns>,
    /// The group of the thread that waits for them, by number in [`Groups::rows`].
    pub waiting: u32,
    /// A process in which the following addresses are valid, by number in [`Analysis::processes`].
    #[serde(skip)]
    pub process: usize,
    /// What the thread that was alone for longest ran more than the others, by address, most samples first.
    #[serde(skip)]
    pub ran: Vec<RanLate>,
}

type Span = (u64, u64);

/// Finds uneven batches. `threads` are the long waits of `analysis`, and `causes` are all its waits.
pub(crate) fn uneven_work(
    images: &[Image],
    analysis: &Analysis,
    groups: &Groups,
    naming: &dyn NamingPlaces,
    causes: &[CauseRow],
    threads: &[OffCpuTimes],
) -> Vec<UnevenWork> {
    let files = images.iter().filter_map(|image| image.syscalls.as_ref());
    let processors = files.map(|file| file.header().processors).max().filter(|&count| count > 0);
    let locks: HashSet<LockKey> = causes
        .iter()
        .filter(|row| row.purpose.is_lock())
        .filter_map(|row| lock_key(&row.object, row.process))
        .collect();
    let mut found: Vec<UnevenWork> = (0..)
        .zip(&groups.rows)
        .filter(|(_, row)| row.members.len() > 1)
        .filter_map(|(group, row)| {
            let pool =
                Pool { group, members: &row.members, analysis, groups, threads, locks: &locks };
            pool.uneven(processors.unwrap_or(u64::MAX))
        })
        .collect();
    if !found.is_empty() {
        let run = Run::new(images, analysis, groups, naming);
        for one in &mut found {
            add_ran(&run, images, analysis, &groups.rows[one.group as usize].members, one);
        }
    }
    found
}

/// The threads of a group.
struct Pool<'a> {
    group: u32,
    members: &'a [u32],
    analysis: &'a Analysis,
    groups: &'a Groups,
    threads: &'a [OffCpuTimes],
    locks: &'a HashSet<LockKey>,
}

/// Time in which one thread works alone.
struct Alone {
    thread: u32,
    span: Span,
    /// The number of others that wait for something to do.
    parked: usize,
}

/// What a thread does from then on. (Of several events at one time, those that end something come first.)
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Now {
    Gone,
    Parked,
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
}

impl Pool<'_> {
    fn uneven(&self, processors: u64) -> Option<UnevenWork> {
        let awaited = self.awaited();
        let mut by_thread: BTreeMap<u32, u64> = BTreeMap::new();
        let (mut batches, mut all_ns, mut alone_ns, mut loss_ns) = (0, 0u64, 0u64, 0.0);
        let mut alone_spans: Vec<(u32, Span)> = Vec::new();
        let mut waiting: BTreeMap<u32, u64> = BTreeMap::new();
        for batch in self.batches() {
            if (batch.shared_ns as f64) < SHARED * (batch.end - batch.begin) as f64 {
                continue;
            }
            all_ns += awaited
                .iter()
                .map(|(span, _)| common(*span, (batch.begin, batch.end)))
                .sum::<u64>();
            let mut held_up = self.held_up_ns(&batch);
            let had_part = (batch.workers.len() as u64).min(processors);
            let mut is_uneven = false;
            for Alone { thread, span, parked } in
                batch.alone.iter().filter(|alone| alone.span.1 - alone.span.0 >= NOTICED_NS)
            {
                let parts = had_part.min(*parked as u64 + 1).max(1) as f64;
                for (of, by) in &awaited {
                    let part = (span.0.max(of.0), span.1.min(of.1));
                    let left = held_up.get_mut(thread);
                    let ns = part.1.saturating_sub(part.0);
                    let ns = match left {
                        Some(left) => {
                            let taken = ns.min(*left);
                            *left -= taken;
                            ns - taken
                        }
                        None => ns,
                    };
                    if ns == 0 {
                        continue;
                    }
                    is_uneven = true;
                    alone_ns += ns;
                    loss_ns += ns as f64 * (1.0 - 1.0 / parts);
                    *by_thread.entry(*thread).or_default() += ns;
                    *waiting.entry(*by).or_default() += ns;
                    alone_spans.push((*thread, part));
                }
            }
            batches += u64::from(is_uneven);
        }
        let (&waiting, _) = waiting.iter().max_by_key(|(_, ns)| **ns)?;
        let mut by_thread: Vec<(u32, Ns)> =
            by_thread.into_iter().map(|(thread, ns)| (thread, Ns(ns))).collect();
        by_thread.sort_by_key(|&(thread, ns)| (std::cmp::Reverse(ns), thread));
        let longest = by_thread.first()?.0;
        let process = self.analysis.threads[longest as usize].process;
        Some(UnevenWork {
            group: self.group,
            batches,
            all_ns: Ns(all_ns),
            alone_ns: Ns(alone_ns),
            loss_ns: Ns::from_f64(loss_ns),
            by_thread,
            wait: self
                .waits_in(&alone_spans, |thread, wait| thread.is_none() && self.is_idle(wait))
                .into_iter()
                .next()
                .map(|row| row.wait),
            own_waits: self.waits_in(&alone_spans, |thread, wait| {
                thread == Some(longest) && !self.is_idle(wait)
            }),
            waiting,
            process,
            ran: Vec::new(),
        })
    }

    /// Returns for how much longer than they did on average others had the processor of each thread of a batch: that is not because of
    /// how the work was divided.
    fn held_up_ns(&self, batch: &Batch) -> HashMap<u32, u64> {
        let preempted_ns = |thread: u32| -> u64 {
            let spans = self.threads[thread as usize].preempted.iter();
            spans.map(|span| common(*span, (batch.begin, batch.end))).sum()
        };
        let each: Vec<(u32, u64)> =
            batch.workers.iter().map(|&thread| (thread, preempted_ns(thread))).collect();
        let all: u64 = each.iter().map(|(_, ns)| ns).sum();
        let others = (each.len() as u64).saturating_sub(1).max(1);
        let more = |(thread, ns): (u32, u64)| (thread, ns.saturating_sub((all - ns) / others));
        each.into_iter().map(more).collect()
    }

    /// Returns whether a thread of the group has nothing to do in this wait.
    fn is_idle(&self, wait: &PathWait) -> bool {
        wait.purpose.is_handover()
            && lock_key(&wait.object, wait.process).is_none_or(|key| !self.locks.contains(&key))
    }

    /// Returns the times in which a thread outside of the group waits for one of its threads, without overlaps, and the group of that thread.
    fn awaited(&self) -> Vec<(Span, u32)> {
        let mut spans: Vec<(Span, u32)> = Vec::new();
        for (thread, own) in self.threads.iter().enumerate() {
            let Some(&group) =
                self.groups.of_thread.get(thread).filter(|&&group| group != self.group)
            else {
                continue;
            };
            let is_for_them = |wait: &&LongWait| {
                let by_them = wait.waker.is_some_and(|waker| self.members.contains(&waker));
                let is_result =
                    wait.wait.purpose.is_handover() || wait.wait.purpose == Purpose::Join;
                by_them && is_result
            };
            let waits = own.waits.iter().filter(is_for_them);
            spans.extend(waits.map(|wait| ((wait.begin_ns, woken(wait)), group)));
        }
        spans.sort_unstable();
        let mut end = 0;
        spans.retain_mut(|(span, _)| {
            span.0 = span.0.max(end);
            end = end.max(span.1);
            span.0 < span.1
        });
        spans
    }

    fn batches(&self) -> Vec<Batch> {
        let mut events: Vec<(u64, Now, u32)> = Vec::new();
        for &member in self.members {
            let row = &self.analysis.threads[member as usize];
            let mut at = row.start_ns.0;
            events.push((at, Now::Works, member));
            for wait in &self.threads[member as usize].waits {
                if self.is_idle(&wait.wait) && wait.begin_ns >= at {
                    at = woken(wait);
                    events.extend([(wait.begin_ns, Now::Parked, member), (at, Now::Works, member)]);
                }
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
                        let alone =
                            |&thread| Alone { thread, span: (since, at), parked: parked.len() };
                        batch.alone.extend(working.iter().map(alone));
                    }
                    1 => {}
                    _ => batch.shared_ns += at - since,
                }
            }
            since = at;
            working.remove(&thread);
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
                Now::Gone => {}
            }
            if let Some(batch) = batches.last_mut().filter(|_| now != Now::Works) {
                batch.end = at;
            }
        }
        batches
    }

    /// Returns the waits of the group's threads in times in which one was alone, longest first: those that are `wanted`, by the thread if it is
    /// the one that was alone, and by what was waited for.
    fn waits_in(
        &self,
        alone: &[(u32, Span)],
        wanted: impl Fn(Option<u32>, &PathWait) -> bool,
    ) -> Vec<WaitInTurns> {
        let mut sums: HashMap<&PathWait, u64> = HashMap::new();
        for &member in self.members {
            for wait in &self.threads[member as usize].waits {
                let span = (wait.begin_ns, woken(wait));
                for &(thread, of) in alone {
                    let ns = common(of, span);
                    if ns > 0 && wanted((thread == member).then_some(member), &wait.wait) {
                        *sums.entry(&wait.wait).or_default() += ns;
                    }
                }
            }
        }
        let row = |(wait, ns): (&PathWait, u64)| WaitInTurns { wait: wait.clone(), ns: Ns(ns) };
        let mut rows: Vec<WaitInTurns> = sums.into_iter().map(row).collect();
        rows.sort_by_key(|row| {
            (std::cmp::Reverse(row.ns), row.wait.api, row.wait.site.map(|site| site.avma))
        });
        rows
    }
}

fn woken(wait: &LongWait) -> u64 {
    wait.woken_ns
        .filter(|woken| (wait.begin_ns..=wait.end_ns).contains(woken))
        .unwrap_or(wait.end_ns)
}

fn common(a: Span, b: Span) -> u64 {
    a.1.min(b.1).saturating_sub(a.0.max(b.0))
}

/// Adds what the thread that was alone for longest ran more often than the others did on average.
fn add_ran(
    run: &Run<'_>,
    images: &[Image],
    analysis: &Analysis,
    members: &[u32],
    one: &mut UnevenWork,
) {
    let Some(&(alone, _)) = one.by_thread.first() else { return };
    let Some(file) = images.get(one.process).and_then(|image| image.syscalls.as_ref()) else {
        return;
    };
    let number = |row: &SampleRow| run.place(one.process, row.context_ref, row.tid).0;
    let mut sums: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
    for row in file.samples() {
        let Some(thread) = number(&row) else { continue };
        let (own, others) = sums.entry(row.address).or_default();
        let samples = u64::from(row.user) + u64::from(row.kernel);
        if thread == alone {
            *own += samples;
        } else if members.contains(&thread) {
            *others += samples;
        }
    }
    let here = |&&member: &&u32| analysis.threads[member as usize].process == one.process;
    let others = (members.iter().filter(here).count() as u64).saturating_sub(1).max(1);
    let more = sums.into_iter().filter_map(|(avma, (own, sum))| {
        let samples = own.saturating_sub(sum.div_ceil(others));
        let address = run.address(one.process, avma).filter(|_| samples > 0)?;
        Some(RanLate { address, samples })
    });
    one.ran = more.collect();
    one.ran.sort_by_key(|row| (std::cmp::Reverse(row.samples), row.address.avma));
}
