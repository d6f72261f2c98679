//! Turns the rows of `.syscalls` files into sums by merged context.

use std::collections::{BTreeMap, HashMap, HashSet};

use chase_recorder::layout::{OWN_CONTEXT_REF, ThreadRecord};
use chase_recorder::reader::Thread;
use chase_recorder::syscalls::{
    NO_SYSCALL, STATE_COMPLETE, STOPPED, SyscallsHeader, WAIT_PREEMPTED, WAIT_VOLUNTARY,
    WAKER_THREAD,
};

use super::names::is_for_memory_map;
use super::sums::{SyscallSums, without_inside};
use crate::costs::{OffCpuTicks, Overhead};
use crate::image::Image;
use crate::off_cpu::{Measured, Missing, OffCpu, Sampling, Spells, WaitSource};
use crate::walk::NOBODY;

/// In place of a system call's number: the thread did not wait, it was stopped.
pub(crate) const WHILE_STOPPED: u32 = NO_SYSCALL - 1;

/// Where a system call was made: number of the merged context, [`NOBODY`] outside of any, or [`UNRECORDED`].
pub(crate) type Place = u32;

/// Where nothing was recorded: before chase had started in the process, in a thread without a record, in a process
/// without a recording.
pub(super) const UNRECORDED: Place = NOBODY - 1;

/// System calls by who made them, and where.
#[derive(Default)]
pub(crate) struct Collected {
    pub(super) sums: BTreeMap<Maker, SyscallSums>,
    /// Waits until threads were woken, ns, with the system call in which they waited, if it was one, and whether it was for the map of
    /// the process's memory.
    pub(super) waits: BTreeMap<(Maker, bool), u64>,
    /// System calls that chase itself made in the processes.
    pub(super) own: SyscallSums,
    /// The overhead of tracing them all.
    pub(super) cost_ns: u64,
}

/// Who made a system call, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Maker {
    pub(super) process: u32,
    pub(super) tid: u32,
    /// Number of the thread in its process.
    pub(super) thread: Option<u32>,
    pub(super) place: Place,
    pub(super) number: u32,
}

/// Waits of the threads of one image, as measured by the scheduler, or by the threads themselves.
pub(crate) struct Scheduler {
    /// By reference of the context and thread id.
    waits: HashMap<(u32, u32), OffCpu>,
    /// The same one by one, if the scheduler was observed.
    spells: HashMap<(u32, u32), Spells>,
    /// For contexts that are not in `waits`.
    others: Measured,
    /// Time on the CPU by thread id, if the scheduler was observed.
    ran_ns: HashMap<u32, u64>,
}

impl Scheduler {
    /// Returns `None` unless the file is complete: otherwise it is unknown what is missing.
    pub(crate) fn from_image(image: &Image) -> Option<Self> {
        match wait_source(image) {
            WaitSource::Asked => return Some(Self::of_asked(image)),
            WaitSource::Scheduler => {}
            WaitSource::Name | WaitSource::Mixed => return None,
        }
        let file = image.syscalls.as_ref()?;
        let mut waits: HashMap<_, OffCpu> = HashMap::new();
        let mut spells: HashMap<_, Spells> = HashMap::new();
        for row in file.waits() {
            let (mut wait_ns, mut preempted_ns) = (0.0, 0.0);
            match row.kind {
                WAIT_VOLUNTARY => wait_ns = row.total_ns as f64,
                WAIT_PREEMPTED => preempted_ns = row.total_ns as f64,
                _ => continue,
            }
            let measured = Measured::complete(wait_ns, preempted_ns);
            let preempted_ns = Some(preempted_ns);
            let off_cpu = OffCpu { wait_ns, preempted_ns, woken_ns: 0.0, measured };
            waits.entry((row.context_ref, row.tid)).or_default().add(off_cpu);
            spells.entry((row.context_ref, row.tid)).or_default().add(&row);
        }
        // Waits are until the thread ran. Who has been woken waits for a processor.
        for row in file.causes() {
            if let Some(off_cpu) = waits.get_mut(&(row.context_ref, row.tid)) {
                off_cpu.end_waits_earlier(row.ready_ns.min(row.total_ns) as f64);
            }
        }
        let mut ran_ns: HashMap<_, u64> = HashMap::new();
        for row in file.on_cpu() {
            let ns = ran_ns.entry(row.tid).or_default();
            // Earlier companions took from one of a thread's rows, below zero, what they had added to another.
            *ns = ns.wrapping_add(row.on_cpu_ns);
        }
        Some(Self { waits, spells, others: Measured::default(), ran_ns })
    }

    fn of_asked(image: &Image) -> Self {
        let mut waits: HashMap<_, OffCpu> = HashMap::new();
        for thread in image.recording.threads() {
            for row in thread.off_cpu() {
                let (wait_ns, preempted_ns) = (row.blocked_ns as f64, row.preempted_ns as f64);
                // Incomplete, since what was too short to be measured is missing.
                let measured = Measured::NOTHING;
                let preempted_ns = Some(preempted_ns);
                let off_cpu = OffCpu { wait_ns, preempted_ns, woken_ns: 0.0, measured };
                waits.entry((row.node_ref, thread.record().tid)).or_default().add(off_cpu);
            }
        }
        Self { waits, spells: HashMap::new(), others: Measured::NOTHING, ran_ns: HashMap::new() }
    }

    /// Returns what the estimated time of calls lacks of the time that thread `tid` was off the CPU in a context.
    pub(crate) fn missing(&self, reference: u32, tid: u32, sampling: Sampling) -> Option<Missing> {
        Some(self.spells.get(&(reference, tid))?.missing(sampling))
    }

    /// Returns how long a thread, which ran for `cpu_ns` if that is not 0, was off the CPU in each of the contexts with these
    /// references, as far as the scheduler was observed.
    pub(crate) fn off_cpu_ticks(
        &self,
        image: &Image,
        thread: &ThreadRecord,
        references: &[u32],
        cpu_ns: u64,
    ) -> OffCpuTicks {
        let cpu_ns = if cpu_ns > 0 { cpu_ns } else { self.ran_ns(thread.tid) };
        if self.spells.is_empty() || cpu_ns == 0 {
            return OffCpuTicks::default();
        }
        let ns_per_tick = image.clock.ns_per_tick();
        let (start, end) = image.lifetime(thread);
        let lifetime_ns = (end.0 - start.0) as f64 * ns_per_tick;
        let ns = |reference: u32| {
            let off_cpu = self.waits.get(&(reference, thread.tid));
            off_cpu.map_or(0.0, |it| it.wait_ns + it.preempted_ns.unwrap_or(0.0))
        };
        let in_contexts: Vec<f64> = references.iter().map(|&reference| ns(reference)).collect();
        // Some of what was measured outside of calls may be before the thread's beginning, or after its end.
        let room_ns = lifetime_ns - cpu_ns as f64 - in_contexts.iter().sum::<f64>();
        let in_own_code = ns(thread.root_ref).min(room_ns).max(0.0) / ns_per_tick;
        let in_contexts = in_contexts.iter().map(|ns| ns / ns_per_tick).collect();
        OffCpuTicks { in_contexts, in_own_code }
    }

    /// Returns how long the threads with this id ran, as far as the scheduler was observed; 0 if it was not.
    pub(crate) fn ran_ns(&self, tid: u32) -> u64 {
        self.ran_ns.get(&tid).copied().unwrap_or(0)
    }

    /// Takes the time that thread `tid` was off the CPU in a context. It is returned only once: if several threads
    /// have one id, the first gets what belongs to no context.
    pub(crate) fn take(&mut self, reference: u32, tid: u32) -> OffCpu {
        let measured = self.others;
        let none = OffCpu { preempted_ns: Some(0.0), measured, ..OffCpu::default() };
        self.waits.remove(&(reference, tid)).unwrap_or(none)
    }
}

/// The overhead of observing, in the threads of one image: of system calls, and of asking for time off the CPU.
pub(crate) struct TracingCost {
    /// By reference of the context and thread id.
    of: HashMap<(u32, u32), Overhead>,
}

impl TracingCost {
    pub(crate) fn from_image(image: &Image) -> Option<Self> {
        let mut of: HashMap<_, Overhead> = HashMap::new();
        if let Some(file) = &image.syscalls {
            let header = file.header();
            for row in file.syscalls() {
                let (inside_ns, observed_ns) = without_inside(&row, header.cost_inside_ns);
                let each_ns = inside_ns.saturating_add(header.cost_outside_ns);
                let overhead = of.entry((row.context_ref, row.tid)).or_default();
                overhead.time += row.calls as f64 * each_ns as f64;
                overhead.observed += observed_ns as f64;
            }
        }
        for thread in image.recording.threads().filter(Thread::asked) {
            for row in thread.off_cpu().filter(|row| row.cost_ticks > 0) {
                let cost_ns = row.cost_ticks as f64 * image.clock.ns_per_tick();
                of.entry((row.node_ref, thread.record().tid)).or_default().time += cost_ns;
            }
        }
        (!of.is_empty()).then_some(Self { of })
    }

    /// Takes the overhead in thread `tid` in a context, in ns. It is returned only once, as by [`Scheduler::take`].
    pub(crate) fn take(&mut self, reference: u32, tid: u32) -> Overhead {
        self.of.remove(&(reference, tid)).unwrap_or_default()
    }
}

/// Returns the overhead of observing one system call.
pub(crate) fn each_ns(header: &SyscallsHeader) -> u64 {
    header.cost_inside_ns.saturating_add(header.cost_outside_ns)
}

/// Returns how the waits of a process were measured.
pub(crate) fn wait_source(image: &Image) -> WaitSource {
    let has_all = image.syscalls.as_ref().is_some_and(|file| {
        let header = file.header();
        header.state == STATE_COMPLETE
            && header.lost_waits == 0
            && header.user_only == 0
            && file.problems().is_empty()
    });
    let mut threads = image.recording.threads().peekable();
    if has_all {
        WaitSource::Scheduler
    } else if threads.peek().is_some() && threads.all(|thread| thread.asked()) {
        WaitSource::Asked
    } else {
        WaitSource::Name
    }
}

/// Maps the contexts of an image to merged ones, and to their threads.
#[derive(Default)]
pub(crate) struct Places {
    /// By reference: number and id of the thread, merged context.
    contexts: HashMap<u32, (u32, u32, Place)>,
    /// By thread id: the thread's number, if only one thread had that id.
    threads: HashMap<u32, Option<u32>>,
    /// Ids of threads that were not to be recorded.
    left_out: HashSet<u32>,
}

impl Places {
    /// Those of an image, of whose threads none is known yet.
    pub(crate) fn new(image: &Image) -> Self {
        let left_out = image.recording.left_out().iter().copied().collect();
        Self { left_out, ..Self::default() }
    }

    /// Whether what was seen of this thread is in no table: it was not to be recorded.
    pub(crate) fn is_left_out(&self, tid: u32) -> bool {
        self.left_out.contains(&tid) && !self.threads.contains_key(&tid)
    }

    pub(crate) fn add_thread(&mut self, thread: u32, tid: u32, root_ref: u32) {
        self.threads.entry(tid).and_modify(|known| *known = None).or_insert(Some(thread));
        self.contexts.insert(root_ref, (thread, tid, NOBODY));
    }

    pub(crate) fn add_context(&mut self, thread: u32, tid: u32, reference: u32, place: Place) {
        self.contexts.insert(reference, (thread, tid, place));
    }

    /// Returns the thread's number and the place for a row's context reference and thread id.
    pub(crate) fn place_of(&self, reference: u32, tid: u32) -> (Option<u32>, Place) {
        let by_tid = || self.threads.get(&tid).copied().flatten();
        match self.contexts.get(&reference).filter(|_| reference != 0) {
            Some(&(thread, own_tid, place)) if own_tid == tid => (Some(thread), place),
            // A child that uses its parent's memory is in its parent's context.
            Some(&(_, _, place)) => (by_tid(), place),
            None => (by_tid(), UNRECORDED),
        }
    }
}

impl Collected {
    /// Adds what was found in a part, whose contexts have the numbers `places` here.
    pub(crate) fn merge(&mut self, part: Self, places: &[Place]) {
        for (maker, sums) in part.sums {
            let place = places.get(maker.place as usize).copied().unwrap_or(maker.place);
            self.sums.entry(Maker { place, ..maker }).or_default().add(&sums);
        }
        for ((maker, for_memory_map), ns) in part.waits {
            let place = places.get(maker.place as usize).copied().unwrap_or(maker.place);
            let sum = self.waits.entry((Maker { place, ..maker }, for_memory_map)).or_default();
            *sum = sum.saturating_add(ns);
        }
        self.own.add(&part.own);
        self.cost_ns = self.cost_ns.saturating_add(part.cost_ns);
    }

    /// Adds the system calls of an image's threads for whose number `wanted` is true.
    pub(crate) fn add(
        &mut self,
        process: usize,
        image: &Image,
        places: &Places,
        wanted: impl Fn(Option<u32>) -> bool,
    ) {
        let Some(file) = &image.syscalls else { return };
        let header = file.header();
        for row in file.syscalls() {
            let (thread, place) = places.place_of(row.context_ref, row.tid);
            if !wanted(thread) || places.is_left_out(row.tid) {
                continue;
            }
            let cost_ns = each_ns(header).saturating_mul(row.calls);
            self.cost_ns = self.cost_ns.saturating_add(cost_ns);
            if row.context_ref == OWN_CONTEXT_REF {
                self.own.add_row(&row, header.cost_inside_ns);
                continue;
            }
            let process = process as u32;
            let maker = Maker { process, tid: row.tid, thread, place, number: row.number };
            self.sums.entry(maker).or_default().add_row(&row, header.cost_inside_ns);
        }
        for row in file.causes().filter(|row| row.context_ref != OWN_CONTEXT_REF) {
            let (thread, place) = places.place_of(row.context_ref, row.tid);
            if wanted(thread) && !places.is_left_out(row.tid) {
                let (process, tid, number) = (process as u32, row.tid, row.number);
                let by_own_process = row.waker_kind == WAKER_THREAD
                    && (row.waker_pid, row.waker_began_ns) == (header.pid, header.began_ns);
                let is_stopped = number == NO_SYSCALL && row.detail == STOPPED;
                let for_memory_map = !is_stopped && is_for_memory_map(number, by_own_process);
                let number = if is_stopped { WHILE_STOPPED } else { number };
                let maker = Maker { process, tid, thread, place, number };
                let sum = self.waits.entry((maker, for_memory_map)).or_default();
                *sum = sum.saturating_add(row.total_ns.saturating_sub(row.ready_ns));
            }
        }
    }
}
