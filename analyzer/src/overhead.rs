//! The overhead of chase: processor time, in the processes of the run and, separately, outside of them.
//!
//! Each part is measured where it arises: the cost of a call, at each process start ([`ThreadRow::own_cost_ns`]); that
//! of starts, ends, forks, threads and new contexts, by the hook as they happen; that of watching system calls, by the
//! companion; that of the companion, by its processor time. If the samples found the hook on the processor for longer,
//! the cost of calls is raised accordingly.
//!
//! The processor time without chase is that of the processes less the overhead in them. Processes record their
//! processor time at their end; for those that could not, it is the sum over their threads, as recorded by these or by
//! the companion. Where neither did, their lifetime without waits is the most that it can be: if such threads matter, the
//! processor time is unknown.
//!
//! Not included: cache misses because chase's data evicted the program's; and the cost of thread switches and samples
//! in the companion's BPF programs, if other tools watch them too.

use std::collections::HashMap;

use chase_recorder::layout::{END_NONE, Header};
use serde::Serialize;

use crate::clock::Ns;
use crate::image::Image;
use crate::on_cpu::OnCpu;
use crate::rows::ThreadRow;

/// As much of the processor time may be unknown: the overhead as a part of it is then still right within a tenth of itself.
const LITTLE: f64 = 0.1;

/// Name of chase's own library in the tables of objects.
pub(crate) const OWN: &str = "libchase.so";

/// The overhead of chase, as processor time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Overhead {
    /// Processor time of the processes without chase, while they were recorded; 0 if it is unknown.
    pub without_ns: Ns,
    /// Overhead of calls.
    pub calls_ns: Ns,
    /// The part of that which only the samples show. Around a call, some of them find the hook where the processor finishes what
    /// the program has begun: all of it is the most that the overhead can be, none of it the least.
    pub sampled_ns: Ns,
    /// Overhead of starts, ends and forks of processes, of starting threads, and of new contexts.
    pub beside_calls_ns: Ns,
    /// Overhead of watching system calls.
    pub watching_ns: Ns,
    /// Processor time of the companion, outside of the processes: its start, and all runs that it has watched by then.
    pub companion_ns: Ns,
}

impl Overhead {
    /// Returns the overhead inside the processes.
    #[must_use]
    pub fn inside_ns(&self) -> Ns {
        let parts = [self.calls_ns, self.beside_calls_ns, self.watching_ns];
        Ns(parts.iter().fold(0, |sum, part| sum.saturating_add(part.0)))
    }

    /// Returns the overhead inside the processes as a fraction of their time without chase; 0 if that is unknown. The
    /// companion is not included: most of its time is for its start, however long the run is, and the processes don't
    /// wait for it.
    #[must_use]
    pub fn share(&self) -> f64 {
        let without = self.without_ns.as_f64();
        if without > 0.0 { self.inside_ns().as_f64() / without } else { 0.0 }
    }

    /// Returns the least that [`Overhead::share`] can be.
    #[must_use]
    pub fn least_share(&self) -> f64 {
        let sampled = self.sampled_ns.as_f64();
        let without = self.without_ns.as_f64() + sampled;
        if self.without_ns.0 == 0 { 0.0 } else { (self.inside_ns().as_f64() - sampled) / without }
    }
}

/// Returns the overhead of starts, ends and forks, of starting threads, and of new contexts, by image.
pub(crate) fn beside_calls(images: &[Image]) -> Vec<Ns> {
    let of_one = |image: &Image| {
        let header = image.recording.header();
        let slow = image.recording.threads().map(|thread| thread.record().slow_ticks as f64);
        let ticks = header.cost_later_ticks as f64 + slow.sum::<f64>();
        let later_ns = Ns::from_f64(ticks * image.clock.ns_per_tick()).0;
        Ns(header.cost_start_ns.saturating_add(later_ns))
    };
    images.iter().map(of_one).collect()
}

/// Computes the overhead in the `selected` images; `threads` are the rows of their threads, `beside_calls` is by image.
pub(crate) fn of_images(
    images: &[Image],
    selected: impl Fn(usize) -> bool,
    threads: &[ThreadRow],
    on_cpu: &OnCpu,
    watching_ns: u64,
    beside_calls: &[Ns],
) -> Overhead {
    let images = || images.iter().enumerate().filter(|(number, _)| selected(*number));
    let (mut beside_ns, mut companion_ns) = (0_u64, 0_u64);
    for (number, image) in images() {
        beside_ns = beside_ns.saturating_add(beside_calls[number].0);
        let companion = image.syscalls.as_ref().map_or(0, |file| file.header().companion_cpu_ns);
        companion_ns = companion_ns.max(companion);
    }
    let sum = |part: fn(&ThreadRow) -> Ns| {
        threads.iter().map(part).fold(0, |sum: u64, ns| sum.saturating_add(ns.0))
    };
    // The cost of threads includes watching, which was subtracted from their times.
    let calls_ns = sum(|row| Ns(row.own_cost_ns.0.saturating_sub(row.own_wait_ns.0)));
    let calls_ns = calls_ns.saturating_sub(watching_ns);
    let found = on_cpu.objects.iter().find(|row| row.name == OWN);
    let found_ns = found.map_or(0, |row| row.time.on_cpu_ns.0);
    // Samples also found the hook in starts of threads and processes that were watched already.
    let known_ns = calls_ns.saturating_add(beside_ns);
    let more_ns = found_ns.saturating_sub(known_ns);
    let cpu_ns = cpu_ns(images(), threads);
    let inside = [calls_ns, more_ns, beside_ns, watching_ns];
    let inside_ns = inside.iter().fold(0, |sum: u64, &part| sum.saturating_add(part));
    Overhead {
        without_ns: Ns(cpu_ns.saturating_sub(inside_ns)),
        calls_ns: Ns(calls_ns.saturating_add(more_ns)),
        sampled_ns: Ns(more_ns),
        beside_calls_ns: Ns(beside_ns),
        watching_ns: Ns(watching_ns),
        companion_ns: Ns(companion_ns),
    }
}

/// Returns the processor time of the processes that the images belong to; 0 if it is unknown.
fn cpu_ns<'i>(images: impl Iterator<Item = (usize, &'i Image)>, threads: &[ThreadRow]) -> u64 {
    // Of each process: what is known, and the most that the rest can be.
    let mut of_threads: HashMap<usize, (u64, u64)> = HashMap::new();
    for row in threads {
        let (known, most) = of_threads.entry(row.process).or_default();
        match row.ran_ns {
            Some(ns) => *known = known.saturating_add(ns.0),
            None => *most = most.saturating_add(most_ns(row)),
        }
    }
    // A process's time at the end of an image includes that of its earlier images; but what it ran before it was attached to, perhaps once
    // more, is none of the image's.
    let mut of_processes: HashMap<_, u64> = HashMap::new();
    let mut unknown = 0_u64;
    let process = |header: &Header| (header.boot_id, header.pid, header.process_start);
    for (number, image) in images {
        let header = image.recording.header();
        let told = header.cpu_ns > 0 && header.end_kind != END_NONE;
        let known = of_processes.entry(process(header)).or_default();
        *known = match told {
            true if image.began_late() => {
                known.saturating_add(header.cpu_ns.saturating_sub(image.ran_before().0))
            }
            true => (*known).max(header.cpu_ns),
            false => {
                let (of_threads, most) = of_threads.get(&number).copied().unwrap_or_default();
                unknown = unknown.saturating_add(most);
                known.saturating_add(of_threads).saturating_add(most)
            }
        };
    }
    let all = of_processes.into_values().fold(0, u64::saturating_add);
    if unknown as f64 > LITTLE * all as f64 { 0 } else { all }
}

/// Returns the most that a thread can have had of the processor, where that was not measured: its lifetime without waits.
fn most_ns(row: &ThreadRow) -> u64 {
    let parts = [
        row.measures.wait_ns,
        row.measures.preempted_ns.unwrap_or_default(),
        row.application_wait_ns.unwrap_or_default(),
        row.application_preempted_ns.unwrap_or_default(),
        row.unattributed_wait_ns,
        row.unattributed_preempted_ns,
    ];
    let off = parts.iter().fold(0, |sum: u64, part| sum.saturating_add(part.0));
    row.lifetime_ns.0.saturating_sub(off)
}
