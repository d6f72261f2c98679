//! Turns the rows of `.syscalls` files into samples in merged contexts.

use std::borrow::Cow;
use std::collections::HashMap;

use chase_recorder::layout::THREAD_ENDED;
use chase_recorder::reader::mapping_path;
use chase_recorder::syscalls::MappingRow;

use crate::address::CodeAddress;
use crate::address_map::AddressMap;
use crate::clock::Ns;
use crate::image::Image;
use crate::names::{Names, Renumbered};
use crate::syscalls::{Place, Places, each_ns};

/// The name of executable memory that belongs to no file.
const GENERATED: &str = "[generated code]";
/// The name of what was one library at first, and later another.
const SEVERAL: &str = "[one of several libraries]";
/// What `/proc/PID/maps` appends to the path of a deleted file.
const DELETED: &str = " (deleted)";

/// Collected samples and times on the CPU.
#[derive(Default)]
pub(crate) struct Collected {
    pub(super) sample_hz: u64,
    pub(super) user_only: bool,
    pub(super) lost_samples: u64,
    pub(super) threads: HashMap<ThreadKey, ThreadTime>,
    pub(super) samples: Vec<Sample>,
}

/// A thread: process and thread id.
pub(super) type ThreadKey = (u32, u32);

#[derive(Clone, Copy, Default)]
pub(super) struct ThreadTime {
    /// Number of the thread in its process.
    pub(super) thread: Option<u32>,
    pub(super) on_cpu_ns: u64,
    pub(super) samples: u64,
    /// The number of samples in the kernel.
    pub(super) kernel_samples: u64,
    /// The maximum time that a sample may stand for; 0: no limit, since samples are of all that the thread does.
    pub(super) most_ns: u64,
    /// The overhead of observing its system calls.
    pub(super) watching_ns: u64,
}

/// Samples of one thread in one context at one address.
pub(super) struct Sample {
    pub(super) thread: ThreadKey,
    pub(super) place: Place,
    pub(super) address: CodeAddress,
    pub(super) object: u32,
    pub(super) user: u64,
    pub(super) kernel: u64,
}

impl Collected {
    /// Returns time on the CPU by number of the process and of the thread, for thread ids that only one thread had.
    pub(crate) fn of_threads(&self) -> HashMap<(u32, u32), Ns> {
        let known = |(&(process, _), time): (&ThreadKey, &ThreadTime)| {
            Some(((process, time.thread?), Ns(time.on_cpu_ns)))
        };
        self.threads.iter().filter_map(known).collect()
    }

    /// Adds what was found in a part, whose contexts have the numbers `places` here.
    pub(crate) fn merge(&mut self, part: Self, numbers: &Renumbered, places: &[Place]) {
        self.sample_hz = self.sample_hz.max(part.sample_hz);
        self.user_only |= part.user_only;
        // The companion counts over all processes, so its latest count is the largest.
        self.lost_samples = self.lost_samples.max(part.lost_samples);
        self.threads.extend(part.threads);
        self.samples.extend(part.samples.into_iter().map(|mut sample| {
            sample.place = places.get(sample.place as usize).copied().unwrap_or(sample.place);
            sample.object = numbers.objects[sample.object as usize];
            sample.address.object = sample.address.object.map(|_| sample.object);
            sample
        }));
    }

    /// Adds the samples of an image's threads for whose number `wanted` is true.
    pub(crate) fn add(
        &mut self,
        process: usize,
        image: &Image,
        places: &Places,
        addresses: &AddressMap,
        names: &mut Names,
        wanted: impl Fn(Option<u32>) -> bool,
    ) {
        let Some(file) = &image.syscalls else { return };
        self.sample_hz = self.sample_hz.max(file.header().sample_hz);
        self.lost_samples = self.lost_samples.max(file.header().lost_samples);
        for row in file.on_cpu() {
            let (thread, _) = places.place_of(0, row.tid);
            if wanted(thread) && !places.is_left_out(row.tid) {
                let time = self.threads.entry((process as u32, row.tid)).or_default();
                time.thread = thread;
                // Earlier companions took from one of a thread's rows, below zero, what they had added to another.
                time.on_cpu_ns = time.on_cpu_ns.wrapping_add(row.on_cpu_ns);
            }
        }
        if file.header().user_only != 0 {
            self.user_only = true;
            self.add_asked(process, image, places, &wanted);
        }
        let each_ns = each_ns(file.header());
        for row in file.syscalls() {
            let (thread, _) = places.place_of(row.context_ref, row.tid);
            if wanted(thread) && !places.is_left_out(row.tid) {
                let time = self.threads.entry((process as u32, row.tid)).or_default();
                let cost_ns = each_ns.saturating_mul(row.calls);
                time.watching_ns = time.watching_ns.saturating_add(cost_ns);
            }
        }
        let mappings: Vec<MappingRow> = file.mappings().collect();
        for row in file.samples() {
            let (thread, place) = places.place_of(row.context_ref, row.tid);
            if !wanted(thread) || places.is_left_out(row.tid) {
                continue;
            }
            let key = (process as u32, row.tid);
            let (user, kernel) = (u64::from(row.user), u64::from(row.kernel));
            let time = self.threads.entry(key).or_default();
            time.thread = thread;
            time.samples = time.samples.saturating_add(user + kernel);
            time.kernel_samples = time.kernel_samples.saturating_add(kernel);
            let address = addresses.find_ever(row.address);
            let object = match address.object {
                Some(object) => object,
                None => names.mapped(&name_outside(addresses, &mappings, row.address)),
            };
            self.samples.push(Sample { thread: key, place, address, object, user, kernel });
        }
    }
}

impl Collected {
    /// Replaces times on the CPU by those that threads have measured themselves, if these are larger than the
    /// companion's; and limits what samples in user space stand for.
    fn add_asked(
        &mut self,
        process: usize,
        image: &Image,
        places: &Places,
        wanted: impl Fn(Option<u32>) -> bool,
    ) {
        let Some(header) = image.syscalls.as_ref().map(|file| *file.header()) else { return };
        // By thread id: the time, and whether it is complete, because all threads with this id have ended.
        let mut asked: HashMap<u32, (u64, bool)> = HashMap::new();
        for thread in image.recording.threads().filter(|thread| thread.asked()) {
            let record = thread.record();
            let (on_cpu_ns, is_all) = asked.entry(record.tid).or_insert((0, true));
            *on_cpu_ns = on_cpu_ns.saturating_add(record.cpu_ns);
            *is_all &= record.state == THREAD_ENDED;
        }
        for (tid, (on_cpu_ns, is_all)) in asked {
            let (thread, _) = places.place_of(0, tid);
            if wanted(thread) {
                let time = self.threads.entry((process as u32, tid)).or_default();
                time.thread = thread;
                time.on_cpu_ns = if is_all { on_cpu_ns } else { time.on_cpu_ns.max(on_cpu_ns) };
            }
        }
        for ((of, _), time) in &mut self.threads {
            if *of == process as u32 {
                time.most_ns = 1_000_000_000 / header.sample_hz.max(1);
            }
        }
    }
}

/// Returns what an address in no single object of the recording is in; empty if unknown.
pub(crate) fn name_outside<'m>(
    addresses: &AddressMap,
    mappings: &'m [MappingRow],
    avma: u64,
) -> Cow<'m, str> {
    if addresses.has_several(avma) { SEVERAL.into() } else { name_of(mappings, avma) }
}

/// Returns the name of the mapping at an address that is in no object of the recording; empty if unknown.
fn name_of(mappings: &[MappingRow], address: u64) -> Cow<'_, str> {
    let holds = |mapping: &&MappingRow| (mapping.start..mapping.end).contains(&address);
    let mut all =
        mappings.iter().rev().filter(holds).map(mapping_path).map(|path| {
            path.strip_suffix(DELETED).map(|path| path.to_owned().into()).unwrap_or(path)
        });
    match all.next() {
        None => "".into(),
        Some(path) if all.any(|other| other != path) => SEVERAL.into(),
        Some(path) if path.is_empty() => GENERATED.into(),
        Some(path) => path,
    }
}
