//! What chase cost a run: processor time, in its processes and, apart from that, beside them.
//!
//! Each part is measured where it arises: what calls cost, at each start ([`ThreadRow::own_cost_ns`]); starts, ends,
//! forks, threads and new contexts, by the hook as they happen; the watching of system calls, by the companion; the
//! companion itself, by its own clock. Where samples were taken, what was found of the hook on the processor stands for
//! the cost of calls if it is more.
//!
//! What the run would have taken without is what its processes took, less what chase did in them. Each told so at its
//! end; of those that could not, the threads did, or the companion, or it is their time that was no waiting.
//!
//! What is not in it: caches that chase's data are in instead of the program's, and, where others watch too, what a
//! switch of threads and a sample take in the companion's programs.

use std::collections::HashMap;

use chase_recorder::layout::{END_NONE, Header};
use serde::Serialize;

use crate::clock::Ns;
use crate::image::Image;
use crate::on_cpu::OnCpu;
use crate::rows::ThreadRow;

/// Name of chase's own library, which samples are found in.
const OWN: &str = "libchase.so";

/// What chase cost, as processor time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Overhead {
    /// Of the processes without chase.
    pub without_ns: Ns,
    /// Of calls.
    pub calls_ns: Ns,
    /// Of starts, ends and forks of processes, of threads and of contexts that were new.
    pub beside_calls_ns: Ns,
    /// Of watching system calls.
    pub watching_ns: Ns,
    /// Of the companion, beside the processes: its start, and all runs that it has watched by then.
    pub companion_ns: Ns,
}

impl Overhead {
    /// What the processes themselves took longer.
    #[must_use]
    pub fn inside_ns(&self) -> Ns {
        let parts = [self.calls_ns, self.beside_calls_ns, self.watching_ns];
        Ns(parts.iter().fold(0, |sum, part| sum.saturating_add(part.0)))
    }

    /// The same as a fraction of what they would have taken without; 0 where that is not known. The companion is not in it:
    /// most of what it takes is for its start, however long the run is, and the processes don't wait for that.
    #[must_use]
    pub fn share(&self) -> f64 {
        let without = self.without_ns.as_f64();
        if without > 0.0 { self.inside_ns().as_f64() / without } else { 0.0 }
    }
}

/// Of the `selected` images, with the rows of their threads.
pub(crate) fn of_images(
    images: &[Image],
    selected: impl Fn(usize) -> bool,
    threads: &[ThreadRow],
    on_cpu: &OnCpu,
    watching_ns: u64,
) -> Overhead {
    let images = || images.iter().enumerate().filter(|(number, _)| selected(*number));
    let (mut start_ns, mut later_ns, mut companion_ns) = (0_u64, 0_u64, 0_u64);
    for (_, image) in images() {
        let header = image.recording.header();
        start_ns = start_ns.saturating_add(header.cost_start_ns);
        let slow = image.recording.threads().map(|thread| thread.record().slow_ticks as f64);
        let ticks = header.cost_later_ticks as f64 + slow.sum::<f64>();
        later_ns = later_ns.saturating_add(Ns::from_f64(ticks * image.clock.ns_per_tick()).0);
        let companion = image.syscalls.as_ref().map_or(0, |file| file.header().companion_cpu_ns);
        companion_ns = companion_ns.max(companion);
    }
    let sum = |part: fn(&ThreadRow) -> Ns| {
        threads.iter().map(part).fold(0, |sum: u64, ns| sum.saturating_add(ns.0))
    };
    // Watching is in it, as far as it was taken off the times of threads.
    let calls_ns = sum(|row| row.own_cost_ns).saturating_sub(watching_ns);
    let found = on_cpu.objects.iter().find(|row| row.name == OWN);
    let found_ns = found.map_or(0, |row| row.time.on_cpu_ns.0);
    // Starts of what was watched before are in it.
    let known_ns = calls_ns.saturating_add(later_ns).saturating_add(start_ns);
    let more_ns = found_ns.saturating_sub(known_ns);
    let cpu_ns = cpu_ns(images(), threads);
    let inside = [calls_ns, more_ns, start_ns, later_ns, watching_ns];
    let inside_ns = inside.iter().fold(0, |sum: u64, &part| sum.saturating_add(part));
    Overhead {
        without_ns: Ns(cpu_ns.saturating_sub(inside_ns)),
        calls_ns: Ns(calls_ns.saturating_add(more_ns)),
        beside_calls_ns: Ns(start_ns.saturating_add(later_ns)),
        watching_ns: Ns(watching_ns),
        companion_ns: Ns(companion_ns),
    }
}

/// Processor time of the processes that images belong to, one after the other.
fn cpu_ns<'i>(images: impl Iterator<Item = (usize, &'i Image)>, threads: &[ThreadRow]) -> u64 {
    let mut of_threads: HashMap<usize, u64> = HashMap::new();
    for row in threads {
        let ns = of_threads.entry(row.process).or_default();
        *ns = ns.saturating_add(thread_cpu_ns(row));
    }
    // What a process had taken when an image of it ended has that of those before in it.
    let mut of_processes: HashMap<_, u64> = HashMap::new();
    let process = |header: &Header| (header.boot_id, header.pid, header.process_start);
    for (number, image) in images {
        let header = image.recording.header();
        let told = header.cpu_ns > 0 && header.end_kind != END_NONE;
        let known = of_processes.entry(process(header)).or_default();
        *known = match told {
            true => (*known).max(header.cpu_ns),
            false => known.saturating_add(of_threads.get(&number).copied().unwrap_or(0)),
        };
    }
    of_processes.into_values().fold(0, u64::saturating_add)
}

/// What a thread took of the processor, or could have.
fn thread_cpu_ns(row: &ThreadRow) -> u64 {
    let parts = [
        row.measures.wait_ns,
        row.measures.preempted_ns.unwrap_or_default(),
        row.application_wait_ns.unwrap_or_default(),
        row.application_preempted_ns.unwrap_or_default(),
        row.unattributed_ns,
    ];
    let off = parts.iter().fold(0, |sum: u64, part| sum.saturating_add(part.0));
    row.on_cpu_ns.map_or_else(|| row.lifetime_ns.0.saturating_sub(off), |ns| ns.0)
}
