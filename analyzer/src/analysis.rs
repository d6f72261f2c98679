//! The tables of an analysis.

mod collect;
mod own_code;
mod part;
mod pauses;
mod tables;
mod thread;

use std::collections::{BTreeMap, HashMap};

use serde::Serialize;

use crate::blocking::Cause;
use crate::clock::Ns;
use crate::image::Image;
use crate::object_causes::ObjectCauses;
use crate::on_cpu::OnCpu;
use crate::overhead::{self, Overhead};
use crate::rows::{
    ApiRow, CallerRow, ContextRow, LibraryRow, ObjectRow, ProcessRow, ThreadRow, Totals, WaitSource,
};
use crate::sums::Sums;
use crate::syscalls::Syscalls;
use crate::unseen::NotSeen;
use crate::wait_causes::OfApis;
use crate::workers::{PART, Workers, parts as parts_of};
use collect::Collector;
use part::Part;
pub(crate) use pauses::Pauses;

/// The selected part of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Selection {
    /// All processes and threads.
    All,
    /// One process, by its number among the images.
    Process(usize),
    /// One thread: the number of its process, and its number there.
    Thread(usize, u32),
}

/// The figures of a run, or of a part of it.
///
/// Processes are numbered as the images are, even if a selection leaves some out; objects and APIs by their index in
/// the tables here. So numbers of two analyses must not be mixed.
#[derive(Clone, Debug, Serialize)]
pub struct Analysis {
    /// Time from the first start to the last end in the selection, without pauses between attachments to a process.
    pub wall_ns: Ns,
    /// The same with these pauses: moments are on this scale.
    pub span_ns: Ns,
    /// Those pauses.
    #[serde(skip)]
    pub(crate) pauses: Pauses,
    /// Sums over the selection.
    pub totals: Totals,
    /// All processes; those not selected have no figures.
    pub processes: Vec<ProcessRow>,
    /// Threads by process and number.
    pub threads: Vec<ThreadRow>,
    /// Libraries and applications, longest first: by time on the CPU where samples were taken, then by self time.
    pub libraries: Vec<LibraryRow>,
    /// APIs by self time, longest first.
    pub apis: Vec<ApiRow>,
    /// Caller → callee by self time, longest first.
    pub callers: Vec<CallerRow>,
    /// The calling-context tree, depth first.
    pub contexts: Vec<ContextRow>,
    /// The files that rows refer to, in no particular order.
    pub objects: Vec<ObjectRow>,
    /// What the figures don't contain.
    pub not_seen: NotSeen,
    /// System calls, if a companion observed them.
    pub syscalls: Syscalls,
    /// What ran on the processors, if samples were taken.
    pub on_cpu: OnCpu,
    /// The overhead of chase.
    pub overhead: Overhead,
    /// What of it is beside calls, by process.
    #[serde(skip)]
    pub(crate) beside_calls: Vec<Ns>,
    /// What waits are for, by API.
    #[serde(skip)]
    pub(crate) wait_causes: OfApis,
    /// What waits in threads' own code are for, by thread, with the part of them that each is.
    #[serde(skip)]
    pub(crate) own_wait_causes: Vec<Vec<(Cause, f64)>>,
    /// Waits in functions that are for something else than `wait_causes` has.
    #[serde(skip)]
    pub(crate) object_causes: ObjectCauses,
    /// The sums behind the rows of `apis`.
    #[serde(skip)]
    pub(crate) api_sums: Vec<Sums>,
    /// The unit of their histograms.
    #[serde(skip)]
    pub(crate) ns_per_reference_tick: f64,
}

impl Analysis {
    /// Analyses the images of one run, on all processors. Takes time linear in their size, except for sorting, and
    /// memory for the tables: for each thread, one entry per context and one per API. A selection of something that
    /// does not exist gives empty tables.
    #[must_use]
    pub fn new(images: &[Image], selection: Selection) -> Self {
        Self::new_with(images, selection, Workers::all(), &mut |_| {})
    }

    /// Like [`Analysis::new`]; from time to time reports to `progress` which fraction of the images was analysed.
    #[must_use]
    pub fn new_with(
        images: &[Image],
        selection: Selection,
        workers: Workers,
        progress: &mut dyn FnMut(f64),
    ) -> Self {
        let parts = Part::all(images, selection);
        // Parts of small images go together: handing over each would take longer than the work.
        let groups = parts_of(parts.iter().map(|part| part.contexts), PART);
        let all: usize = parts.iter().map(|part| part.contexts).sum();
        let mut done = 0;
        let mut collector = Collector::new(images, selection);
        let scales = collector.scales.clone();
        collector.expect_threads(parts.iter().map(|part| part.threads.len()).sum());
        let of = |at: usize| &parts[groups[at].clone()];
        let work = |at: usize| (at, Collector::of_parts(images, of(at), selection, &scales));
        workers.in_order(groups.len(), work, |(at, collected)| {
            collector.merge(collected);
            done += of(at).iter().map(|part| part.contexts).sum::<usize>();
            progress(done as f64 / all.max(1) as f64);
        });
        let mut analysis = tables::from_collector(collector.finish());
        analysis.beside_calls = overhead::beside_calls(images);
        analysis.overhead = overhead::of_images(
            images,
            |number| selection.has_process(number),
            &analysis.threads,
            &analysis.on_cpu,
            analysis.syscalls.tracing_cost_ns.0,
            &analysis.beside_calls,
        );
        analysis
    }
}

impl Analysis {
    /// The image of a process that went on as another program (`exec`) before this one, by number in [`Analysis::processes`].
    #[must_use]
    pub fn image_before(&self, process: usize) -> Option<usize> {
        let row = self.processes.get(process)?;
        row.parent.filter(|&parent| self.processes.get(parent).is_some_and(|of| of.pid == row.pid))
    }

    /// The number of threads. One that goes on as another program has a row for each, and counts once.
    #[must_use]
    pub fn number_of_threads(&self) -> usize {
        let mut images = HashMap::new();
        // One that goes on as another program, or is attached to once more, has a row in each image.
        let is_again = |thread: &&ThreadRow| {
            let before = images.insert(self.identity(thread), thread.process);
            before.is_some_and(|image| image != thread.process)
        };
        let again = self.threads.iter().filter(is_again).count();
        self.totals.threads.saturating_sub(again)
    }

    /// What a thread has in common with none but its rows in other images: the first image of its process, and its id.
    #[must_use]
    pub(crate) fn identity(&self, thread: &ThreadRow) -> (usize, u32) {
        let images = std::iter::successors(Some(thread.process), |&image| self.image_before(image));
        (images.last().unwrap_or(thread.process), thread.tid)
    }

    /// Returns what a thread's waits in an API, or in its own code, are for, or mostly are; both by number.
    #[must_use]
    pub fn waits_for(&self, api: Option<u32>, thread: u32) -> Cause {
        self.parts_of_waits(api, thread).first().map_or(Cause::Other, |part| part.0)
    }

    /// Returns what a thread's waits in an API, or in its own code, which waits for different things, are for, and which part of
    /// them each is, largest first.
    #[must_use]
    pub fn parts_of_waits(&self, api: Option<u32>, thread: u32) -> Vec<(Cause, f64)> {
        let whole = |cause: &Cause| vec![(*cause, 1.0)];
        let parts = match api {
            Some(api) => self.wait_causes.mostly.get(api as usize).map(|mostly| {
                let by_objects = self.object_causes.parts(Some(api), thread, *mostly);
                let mixed = || self.wait_causes.mixed.get(&(api, thread)).cloned();
                by_objects.or_else(mixed).unwrap_or_else(|| whole(mostly))
            }),
            None => {
                let by_objects = self.object_causes.parts(None, thread, Cause::Other);
                by_objects.or_else(|| self.own_wait_causes.get(thread as usize).cloned())
            }
        };
        parts.unwrap_or_else(|| whole(&Cause::Other))
    }

    /// The same of all threads' waits in an API.
    #[must_use]
    pub fn parts_of_all_waits(&self, api: u32) -> Vec<(Cause, f64)> {
        if !self.object_causes.are_in(api) {
            let mixed = self.wait_causes.of_all_threads.get(&api).cloned();
            return mixed.unwrap_or_else(|| vec![(self.waits_for(Some(api), 0), 1.0)]);
        }
        let mut times: BTreeMap<Cause, f64> = BTreeMap::new();
        for (number, thread) in (0..).zip(&self.threads) {
            for row in thread.apis.iter().filter(|row| row.api == api && row.wait_ns.0 > 0) {
                for (cause, part) in self.parts_of_waits(Some(api), number) {
                    *times.entry(cause).or_default() += row.wait_ns.as_f64() * part;
                }
            }
        }
        let all: f64 = times.values().sum();
        times.into_iter().map(|(cause, ns)| (cause, ns / all)).collect()
    }

    /// Whether calls of some process were only counted: then it is not known what was in them, and what in own code.
    #[must_use]
    pub fn only_counts(&self) -> bool {
        self.not_seen.processes_counted > 0
    }

    /// Notes what waits are for where only the objects tell, by [`object_causes()`](crate::object_causes()): that takes names.
    pub fn set_object_causes(&mut self, causes: ObjectCauses) {
        self.object_causes = causes;
    }

    /// Returns how waits were measured.
    #[must_use]
    pub fn wait_source(&self) -> WaitSource {
        // A process that made no library calls has no waits in them.
        let recorded = self.processes.iter().filter(|process| process.totals.threads > 0);
        let mut sources = recorded.map(|process| process.wait_source);
        let first = sources.next().unwrap_or_default();
        if sources.all(|source| source == first) { first } else { WaitSource::Mixed }
    }
}

impl Selection {
    fn has_process(self, process: usize) -> bool {
        match self {
            Self::All => true,
            Self::Process(selected) | Self::Thread(selected, _) => selected == process,
        }
    }

    fn has_thread(self, number: u32) -> bool {
        match self {
            Self::All | Self::Process(_) => true,
            Self::Thread(_, selected) => selected == number,
        }
    }
}
