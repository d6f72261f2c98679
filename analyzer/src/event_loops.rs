//! Event loops: threads that wait for events (descriptors to be ready, or operations of `io_uring` to be over), handle them, and wait
//! again.
//!
//! A *turn* is the time between two waits. All that the thread serves waits until it is over. A loop is *held up* by a turn that
//! is much longer than its usual ones, if something was ready for it meanwhile. Turns are compared by the time that is the loop's own:
//! time in which others had the processor is subtracted.

use std::collections::{BTreeMap, HashMap, HashSet};

use chase_recorder::layout::OWN_CONTEXT_REF;
use chase_recorder::reader::SyscallsFile;
use chase_recorder::syscalls::{
    BlockedRow, CauseRow, LongTurnRow, NO_DESCRIPTOR, SampleRow, TurnsRow, bucket_end_ns,
};
use serde::Serialize;

use crate::address::CodeAddress;
use crate::analysis::Analysis;
use crate::causes::{NamingPlaces, PathWait, Run};
use crate::clock::Ns;
use crate::common_time::CommonTime;
use crate::groups::Groups;
use crate::image::Image;
use crate::long_waits::{LongWait, OffCpuTimes};
use crate::run_start::start;
use crate::spans::{Span, common_ns, parts_ns};

/// Shorter turns are noticed by nobody: clients wait about as long for a network.
const NOTICED_NS: u64 = 20_000_000;
/// A turn is much longer than the usual ones if it takes so many times as long.
const MUCH_LONGER: u64 = 20;
/// `futex(2)`.
const FUTEX: u32 = 202;

/// The event loop of a thread.
#[derive(Clone, Debug, Serialize)]
pub struct EventLoop {
    /// The thread, by number in [`Analysis::threads`].
    #[serde(skip)]
    pub thread: u32,
    /// Its group, by number in [`Groups::rows`].
    pub group: u32,
    /// The API in which it waits, by number in [`Analysis::apis`].
    pub api: Option<u32>,
    /// The number of turns.
    pub turns: u64,
    /// Their total time.
    pub total_ns: Ns,
    /// The longest.
    pub max_ns: Ns,
    /// The part of the total in which the thread waited for something else.
    pub blocked_ns: Ns,
    /// The part of the total in which others had the processor.
    pub preempted_ns: Ns,
    /// How long it waited for events.
    pub waited_ns: Ns,
    /// Half of the turns take less than this, which is a power of two times 64 ns.
    pub usual_ns: Ns,
    /// Long turns that are only in the sums, for lack of room.
    pub not_kept: u64,
    /// The turns that held it up, in their order.
    pub held_up: Vec<HeldUp>,
    /// Threads of the run that waited for it in these turns, longest first.
    pub clients: Vec<Client>,
    /// A process in which the addresses of the following are valid, by number in [`Analysis::processes`].
    #[serde(skip)]
    pub process: usize,
    /// What ran late in long turns, by address, most samples first.
    #[serde(skip)]
    pub ran: Vec<RanLate>,
    /// What the thread waited for in turns that held it up, for a millisecond or more each; longest first.
    #[serde(skip)]
    pub waits: Vec<WaitInTurns>,
}

/// A turn that held a loop up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct HeldUp {
    /// When it began, since the start of the run.
    pub at_ns: Ns,
    /// How long it took.
    pub ns: Ns,
    /// The part in which the thread waited for something else.
    pub blocked_ns: Ns,
    /// The part in which others had the processor of the thread, or of the one that it waited for.
    pub preempted_ns: Ns,
    /// The number of events for others meanwhile (descriptors ready, operations over), at least: when it was over, or with the one that it began with.
    pub ready: u32,
}

/// Threads of one group that waited for a loop while it was held up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Client {
    /// The group, by number in [`Groups::rows`].
    pub group: u32,
    /// The number of threads.
    pub threads: usize,
    /// How long they waited in turns that held the loop up, in total; waits of a millisecond or more.
    pub wait_ns: Ns,
}

/// Samples at one address that were taken late in long turns.
#[derive(Clone, Copy, Debug)]
pub struct RanLate {
    /// The address.
    pub address: CodeAddress,
    /// The number of samples.
    pub samples: u64,
}

/// Waits with everything in common.
#[derive(Clone, Debug)]
pub struct WaitInTurns {
    /// What was waited for, and where.
    pub wait: PathWait,
    /// Their total time.
    pub ns: Ns,
}

impl HeldUp {
    /// Returns how long it was, without the time in which others had the processor.
    #[must_use]
    pub fn own_ns(&self) -> Ns {
        Ns(self.ns.0.saturating_sub(self.preempted_ns.0))
    }
}

impl EventLoop {
    /// Returns the sum over all turns that held it up.
    #[must_use]
    pub fn held_up_ns(&self, of: impl Fn(&HeldUp) -> Ns) -> Ns {
        Ns(self.held_up.iter().fold(0, |sum, turn| sum.saturating_add(of(turn).0)))
    }
}

/// What was recorded of one loop: of a thread, by the descriptor that it waits with.
struct Recorded {
    row: TurnsRow,
    api: Option<u32>,
}

/// Returns the event loop of each thread that has one: the one in which it waits longest. Threads that wait in turn with one descriptor
/// of epoll have none, since another one of them takes what is ready. `images` are those of `analysis`.
pub(crate) fn event_loops(
    images: &[Image],
    analysis: &Analysis,
    groups: &Groups,
    naming: &dyn NamingPlaces,
    times: &[OffCpuTimes],
) -> Vec<EventLoop> {
    let run = Run::new(images, analysis, groups, naming);
    let time = CommonTime::new(images);
    let start = start(images, analysis, &time).unwrap_or_default();
    let mut loops = Vec::new();
    for (process, image) in images.iter().enumerate() {
        let Some(file) = &image.syscalls else { continue };
        let of_threads = loops_of(&run, analysis, process, file);
        let mut long_turns: HashMap<(u32, u32), Vec<LongTurnRow>> = HashMap::new();
        for turn in file.long_turns().filter(|turn| turn.begin_ns < turn.end_ns) {
            long_turns.entry((turn.tid, turn.descriptor)).or_default().push(turn);
        }
        let inside = Inside::new(file, long_turns.keys().map(|&(tid, _)| tid).collect());
        for (thread, Recorded { row, api }) in of_threads {
            let Some(&group) = groups.of_thread.get(thread as usize) else { continue };
            let usual_ns = usual(&row);
            let long = long_turns.remove(&(row.tid, row.descriptor)).unwrap_or_default();
            let not_kept = row.long_turns.saturating_sub(long.len() as u64);
            let since = |ns: u64| time.of_monotonic(image, ns).0.saturating_sub(start);
            let long = long.into_iter().map(|mut turn| {
                let span = (since(turn.begin_ns), since(turn.end_ns));
                // Who waits for a thread that others keep from running waits for a processor, too.
                let ns = without_processor_ns(times, thread, span).min(turn.blocked_ns);
                turn.blocked_ns -= ns;
                turn.preempted_ns = turn.preempted_ns.saturating_add(ns);
                turn
            });
            let mut long: Vec<LongTurnRow> = long.filter(|turn| holds_up(turn, usual_ns)).collect();
            long.sort_by_key(|turn| turn.begin_ns);
            let held_up = |turn: &LongTurnRow| HeldUp {
                at_ns: Ns(time.of_monotonic(image, turn.begin_ns).0.saturating_sub(start)),
                ns: Ns(turn.end_ns - turn.begin_ns),
                blocked_ns: Ns(turn.blocked_ns),
                preempted_ns: Ns(turn.preempted_ns),
                ready: ready(turn),
            };
            loops.push(EventLoop {
                thread,
                group,
                api,
                turns: row.turns,
                total_ns: Ns(row.total_ns),
                max_ns: Ns(row.max_ns),
                blocked_ns: Ns(row.blocked_ns),
                preempted_ns: Ns(row.preempted_ns),
                waited_ns: Ns(row.waited_ns),
                usual_ns: Ns(usual_ns),
                not_kept,
                held_up: long.iter().map(held_up).collect(),
                clients: Vec::new(),
                process,
                ran: if long.is_empty() { Vec::new() } else { inside.ran(&run, process, row.tid) },
                waits: inside.waits(&run, process, &long),
            });
        }
    }
    let since_start = |image: &Image, ns: u64| time.of_monotonic(image, ns).0.saturating_sub(start);
    add_clients(&run, images, groups, since_start, &mut loops);
    loops.sort_by_key(|one| (std::cmp::Reverse(one.held_up_ns(HeldUp::own_ns)), one.thread));
    loops
}

/// Returns how long, while a thread waited in a span, the thread that it waited for had no processor.
fn without_processor_ns(times: &[OffCpuTimes], thread: u32, span: Span) -> u64 {
    let waits = times.get(thread as usize).into_iter().flat_map(|own| &own.waits);
    let of = |wait: &LongWait| {
        let woken = wait.woken_ns.unwrap_or(wait.end_ns);
        let part = (wait.begin_ns.max(span.0), woken.min(span.1));
        let waker = wait.waker.filter(|_| part.0 < part.1);
        let waker = waker.and_then(|waker| times.get(waker as usize));
        waker.map_or(0, |waker| common_ns(&waker.without_processor(), part))
    };
    waits.map(of).fold(0, u64::saturating_add)
}

/// With one descriptor, others may wait at most this part of all waits, as while it is set up.
const HARDLY_SHARED: f64 = 0.1;

fn loops_of(
    run: &Run<'_>,
    analysis: &Analysis,
    process: usize,
    file: &SyscallsFile<'_>,
) -> BTreeMap<u32, Recorded> {
    let rows = file.turns().filter(|row| row.context_ref != OWN_CONTEXT_REF);
    let placed = rows.map(|row| {
        let (thread, api) = run.place(process, row.context_ref, row.tid);
        (thread, Recorded { row, api })
    });
    let rows: Vec<(Option<u32>, Recorded)> = placed.collect();
    let mut waiting: HashMap<u32, Vec<(Option<u32>, u64)>> = HashMap::new();
    let by_epoll = rows.iter().map(|(thread, of)| (thread, &of.row));
    for (thread, row) in by_epoll.filter(|(_, row)| row.descriptor != NO_DESCRIPTOR) {
        waiting.entry(row.descriptor).or_default().push((*thread, row.waits));
    }
    // (A later thread may have a descriptor of the same number. Of those that are not recorded it is not known.)
    let live_together = |a: u32, b: Option<u32>| {
        let Some(b) = b else { return true };
        let [a, b] = [a, b].map(|thread| &analysis.threads[thread as usize]);
        a.start_ns < b.end_ns && b.start_ns < a.end_ns
    };
    let is_shared = |thread: u32, row: &TurnsRow| {
        let all = waiting.get(&row.descriptor).map_or(&[][..], |all| all);
        let others = all.iter().filter(|(other, _)| *other != Some(thread));
        let others = others.filter(|(other, _)| live_together(thread, *other));
        let others = others.fold(0, |sum: u64, (_, waits)| sum.saturating_add(*waits)) as f64;
        others > HARDLY_SHARED * (others + row.waits as f64)
    };
    let mut of_threads: BTreeMap<u32, Recorded> = BTreeMap::new();
    for (thread, recorded) in rows {
        let Some(thread) = thread else { continue };
        let longest = of_threads.get(&thread).map_or(0, |known| known.row.waited_ns);
        if recorded.row.turns > 0 && recorded.row.waited_ns >= longest {
            of_threads.insert(thread, recorded);
        }
    }
    of_threads.retain(|&thread, recorded| !is_shared(thread, &recorded.row));
    of_threads
}

/// Returns the end of the range that the median of the turns is in.
fn usual(row: &TurnsRow) -> u64 {
    let add = |sum: u64, turns: &u64| sum.saturating_add(*turns);
    let turns = row.histogram.iter().fold(0, add);
    let mut sum = 0;
    let bucket = row.histogram.iter().position(|turns_in_bucket| {
        sum = add(sum, turns_in_bucket);
        sum > turns / 2
    });
    bucket.and_then(bucket_end_ns).unwrap_or(u64::MAX)
}

/// Returns how many descriptors were ready meanwhile: when the turn was over; or when it began, but for the one that it took long for.
fn ready(turn: &LongTurnRow) -> u32 {
    turn.ready.max(turn.begun_with.saturating_sub(1))
}

fn holds_up(turn: &LongTurnRow, usual_ns: u64) -> bool {
    let own_ns = (turn.end_ns - turn.begin_ns).saturating_sub(turn.preempted_ns);
    own_ns >= NOTICED_NS && own_ns >= usual_ns.saturating_mul(MUCH_LONGER) && ready(turn) > 0
}

/// What the threads with long turns did inside of them.
struct Inside {
    causes: Vec<CauseRow>,
    late: HashMap<u32, Vec<SampleRow>>,
    blocked: HashMap<u32, Vec<BlockedRow>>,
}

impl Inside {
    fn new(file: &SyscallsFile<'_>, tids: HashSet<u32>) -> Self {
        let (mut late, mut blocked): (HashMap<_, Vec<_>>, HashMap<_, Vec<_>>) = Default::default();
        if tids.is_empty() {
            return Self { causes: Vec::new(), late, blocked };
        }
        for row in file.late_samples().filter(|row| tids.contains(&row.tid)) {
            late.entry(row.tid).or_default().push(row);
        }
        for row in file.blocked().filter(|row| tids.contains(&row.tid)) {
            blocked.entry(row.tid).or_default().push(row);
        }
        Self { causes: file.causes().collect(), late, blocked }
    }

    fn ran(&self, run: &Run<'_>, process: usize, tid: u32) -> Vec<RanLate> {
        let late = |row: &SampleRow| {
            let address = run.address(process, row.address)?;
            Some(RanLate { address, samples: u64::from(row.user) + u64::from(row.kernel) })
        };
        let mut ran: Vec<RanLate> =
            self.late.get(&tid).into_iter().flatten().filter_map(late).collect();
        ran.sort_by_key(|row| (std::cmp::Reverse(row.samples), row.address.avma));
        ran
    }

    /// Returns what a thread waited for in these turns of it, until it was woken.
    fn waits(&self, run: &Run<'_>, process: usize, turns: &[LongTurnRow]) -> Vec<WaitInTurns> {
        let Some(tid) = turns.first().map(|turn| turn.tid) else { return Vec::new() };
        let times: Vec<Span> = turns.iter().map(|turn| (turn.begin_ns, turn.end_ns)).collect();
        let mut sums: HashMap<PathWait, u64> = HashMap::new();
        for row in self.blocked.get(&tid).into_iter().flatten() {
            let cause = self.causes.get(row.cause as usize).filter(|cause| cause.tid == tid);
            let Some(cause) = cause else { continue };
            let is_woken = (row.begin_ns..row.end_ns).contains(&row.woken_ns);
            let to = if is_woken { row.woken_ns } else { row.end_ns };
            let ns = common_ns(&times, (row.begin_ns, to));
            if ns > 0 {
                let (_, api) = run.place(process, cause.context_ref, tid);
                let sum = sums.entry(run.wait(process, cause, api)).or_default();
                *sum = sum.saturating_add(ns);
            }
        }
        let mut waits: Vec<WaitInTurns> =
            sums.into_iter().map(|(wait, ns)| WaitInTurns { wait, ns: Ns(ns) }).collect();
        waits.sort_by_key(|row| {
            (std::cmp::Reverse(row.ns), row.wait.api, row.wait.site.map(|site| site.avma))
        });
        waits
    }
}

/// Adds which threads of the run waited for the loops while these were held up: for a descriptor, and mostly in a turn that held the loop up.
fn add_clients(
    run: &Run<'_>,
    images: &[Image],
    groups: &Groups,
    since_start: impl Fn(&Image, u64) -> u64,
    loops: &mut [EventLoop],
) {
    let held_up = (0..).zip(&*loops).filter(|(_, one)| !one.held_up.is_empty());
    let by_thread: HashMap<u32, usize> =
        held_up.map(|(number, one)| (one.thread, number)).collect();
    if by_thread.is_empty() {
        return;
    }
    let turns = |one: &EventLoop| -> Vec<Span> {
        one.held_up
            .iter()
            .map(|turn| (turn.at_ns.0, turn.at_ns.0.saturating_add(turn.ns.0)))
            .collect()
    };
    let turns: Vec<Vec<Span>> = loops.iter().map(turns).collect();
    let mut sums: BTreeMap<(usize, u32), (HashSet<u32>, u64)> = BTreeMap::new();
    for (process, image) in images.iter().enumerate() {
        let Some(file) = &image.syscalls else { continue };
        let causes: Vec<CauseRow> = file.causes().collect();
        for row in file.blocked() {
            let Some(cause) = causes.get(row.cause as usize).filter(|one| one.tid == row.tid)
            else {
                continue;
            };
            let (_, Some(waker)) = run.waker(cause) else { continue };
            let Some(&number) = by_thread.get(&waker) else { continue };
            let (Some(thread), _) = run.place(process, cause.context_ref, row.tid) else {
                continue;
            };
            let Some(&group) = groups.of_thread.get(thread as usize) else { continue };
            let (from, to) = (since_start(image, row.begin_ns), since_start(image, row.end_ns));
            let ns = parts_ns(&turns[number], (from, to)).max().unwrap_or_default();
            // Who has nothing to do waits longer, or for a futex.
            let is_for_it = cause.number != FUTEX && ns > to.saturating_sub(from) / 2;
            if is_for_it && thread != waker {
                let (threads, sum) = sums.entry((number, group)).or_default();
                threads.insert(thread);
                *sum = sum.saturating_add(ns);
            }
        }
    }
    for ((number, group), (threads, ns)) in sums {
        loops[number].clients.push(Client { group, threads: threads.len(), wait_ns: Ns(ns) });
    }
    for one in loops {
        one.clients.sort_by_key(|client| (std::cmp::Reverse(client.wait_ns), client.group));
    }
}
