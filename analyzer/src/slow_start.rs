//! What libraries do before the program does anything of its own: their constructors.
//!
//! The dynamic linker runs the constructors of linked libraries, by calls that nobody sees. What is seen is that a library's own code runs,
//! by samples, or makes library calls, while its first thread is in no library call at all. A library does that as well when the program
//! calls it through a table of its own (virtual functions, callbacks). So it counts only before the program has run or called anything: calls
//! by their order in the recording, which is that in which they were first made, and samples by their times. The first call of the program is
//! in no sample: so samples count only of a library that has made a call before that one, and none after it but to give back what it has.

use std::collections::{BTreeMap, HashMap, HashSet};

use serde::Serialize;

use crate::analysis::Analysis;
use crate::bounds::{MATERIAL_NS, MATERIAL_SHARE};
use crate::clock::Ns;
use crate::event_loops::RanLate;
use crate::groups::Groups;
use crate::image::Image;
use crate::on_cpu::OnCpuOfThread;
use crate::overhead::OWN;
use crate::packed::ThreadContext;
use crate::rows::{ContextRow, ThreadOrigin, ThreadRow};
use crate::timed_samples::{TimedSample, timed_samples};

/// At most this part of a library's samples outside of calls is taken later than the program's first one: what also runs then is called
/// through a table.
const LATER: f64 = 0.1;

/// What destructors do.
const GIVE_BACK: &[&str] =
    &["free", "_ZdlPv", "_ZdlPvm", "_ZdaPv", "munmap", "fclose", "close", "__cxa_finalize"];

/// A library that takes its time before the program runs.
#[derive(Clone, Debug, Serialize)]
pub struct SlowStart {
    /// The first thread of the process, by number in [`Analysis::threads`].
    pub thread: u32,
    /// The library, by number in [`Analysis::objects`].
    pub library: u32,
    /// How long its own code had the processor.
    pub own_ns: Ns,
    /// How long the library calls took that it made.
    pub calls_ns: Ns,
    /// The API in which it was longest, by number in [`Analysis::apis`], and for how long.
    pub longest: Option<(u32, Ns)>,
    /// The process, by number in [`Analysis::processes`]. The following addresses are valid in it.
    #[serde(skip)]
    pub process: usize,
    /// What it ran, by address, most samples first.
    #[serde(skip)]
    pub ran: Vec<RanLate>,
}

/// Finds such libraries, where that takes a material time.
pub(crate) fn slow_starts(
    images: &[Image],
    analysis: &Analysis,
    groups: &Groups,
) -> Vec<SlowStart> {
    let least_ns = MATERIAL_NS.max(MATERIAL_SHARE * analysis.wall_ns.as_f64());
    let is_material = |start: &SlowStart| start.all_ns() >= least_ns;
    let threads = (0..).zip(&analysis.threads);
    let first = threads.filter(|(_, row)| {
        let process = analysis.processes.get(row.process);
        // (A process that was attached to had started long before.)
        let is_seen = images.get(row.process).is_some_and(|image| !image.began_late());
        let is_first = process.is_some_and(|process| !process.forked);
        row.origin == ThreadOrigin::Main && is_first && is_seen
    });
    let mut own_code: HashMap<(usize, u32), Vec<&OnCpuOfThread>> = HashMap::new();
    for own in analysis.on_cpu.of_threads.iter().filter(|own| own.api.is_none()) {
        own_code.entry((own.process as usize, own.thread)).or_default().push(own);
    }
    let mut found: Vec<SlowStart> = first
        .flat_map(|(number, row)| {
            let own = own_code.get(&(row.process, row.thread)).map_or(&[][..], |own| own);
            of_thread(analysis, own, (number, row))
        })
        .filter(is_material)
        .collect();
    if found.iter().any(|start| start.own_ns > Ns(0)) {
        let samples = timed_samples(images, analysis, groups);
        for start in &mut found {
            let own = samples.get(start.thread as usize).map_or(&[][..], |own| own);
            let roots = roots(images, analysis, start.process);
            start.count_until(analysis, own, &roots);
        }
    }
    found.retain(is_material);
    found.sort_by(|a, b| b.all_ns().total_cmp(&a.all_ns()).then(a.thread.cmp(&b.thread)));
    found
}

impl SlowStart {
    fn all_ns(&self) -> f64 {
        self.own_ns.as_f64() + self.calls_ns.as_f64()
    }

    /// Counts of the library's own code what ran before the program did.
    fn count_until(
        &mut self,
        analysis: &Analysis,
        samples: &[TimedSample],
        roots: &HashMap<u32, u32>,
    ) {
        let program = analysis.threads[self.thread as usize].own_object;
        let is_program = |sample: &TimedSample| match sample.api {
            Some(_) => roots.get(&sample.context_ref).is_none_or(|&caller| caller == program),
            None => sample.object == program,
        };
        let until = samples.iter().position(is_program);
        // (If it is never seen to run, the library is what it runs.)
        let (before, later) = samples.split_at(until.unwrap_or(0));
        let is_own = |sample: &&TimedSample| sample.api.is_none() && sample.object == self.library;
        let weight = |samples: &[TimedSample]| -> u64 {
            samples.iter().filter(is_own).map(|sample| u64::from(sample.stands_for)).sum()
        };
        let (earlier, later) = (weight(before), weight(later));
        if later as f64 > LATER * (earlier + later) as f64 {
            self.own_ns = Ns(0);
            return;
        }
        let part = earlier as f64 / (earlier + later).max(1) as f64;
        self.own_ns = Ns::from_f64(self.own_ns.as_f64() * part);
        let mut ran: BTreeMap<u64, RanLate> = BTreeMap::new();
        for sample in before.iter().filter(is_own) {
            let row = RanLate { address: sample.address, samples: 0 };
            let row = ran.entry(sample.address.avma).or_insert(row);
            row.samples = row.samples.saturating_add(u64::from(sample.stands_for));
        }
        self.ran = ran.into_values().collect();
        self.ran.sort_by_key(|row| (std::cmp::Reverse(row.samples), row.address.avma));
    }
}

/// Returns the libraries that call something in a first thread outside of all calls, before the program does.
/// `own_code` is what it ran meanwhile.
fn of_thread(
    analysis: &Analysis,
    own_code: &[&OnCpuOfThread],
    (thread, row): (u32, &ThreadRow),
) -> Vec<SlowStart> {
    let program = row.own_object;
    let start = |library: u32| SlowStart {
        thread,
        library,
        own_ns: Ns(0),
        calls_ns: Ns(0),
        longest: None,
        process: row.process,
        ran: Vec::new(),
    };
    let root = |part: &ThreadContext| {
        let context = &analysis.contexts[part.context as usize];
        context.parent.is_none().then_some((*part, context))
    };
    let roots: Vec<(ThreadContext, &ContextRow)> =
        row.contexts.iter().filter_map(|part| root(&part)).collect();
    let first = roots.iter().position(|(_, context)| context.caller == program);
    let (before, later) = roots.split_at(first.unwrap_or(roots.len()));
    let is_work =
        |context: &ContextRow| !GIVE_BACK.contains(&&*analysis.apis[context.api as usize].symbol);
    let works_later: HashSet<u32> = later
        .iter()
        .filter(|(_, context)| is_work(context))
        .map(|(_, context)| context.caller)
        .collect();
    let mut starts: BTreeMap<u32, SlowStart> = BTreeMap::new();
    for (part, context) in before {
        let start = starts.entry(context.caller).or_insert_with(|| start(context.caller));
        // (Of several calls, some may have been made later.)
        if works_later.contains(&context.caller) && part.calls > 1 {
            continue;
        }
        start.calls_ns = Ns(start.calls_ns.0.saturating_add(part.total_ns.0));
        if start.longest.is_none_or(|(_, longest_ns)| longest_ns < part.total_ns) {
            start.longest = Some((context.api, part.total_ns));
        }
    }
    // (A call that is only counted is no call to samples.)
    let counted: HashSet<u32> = row
        .contexts
        .iter()
        .map(|part| &analysis.contexts[part.context as usize])
        .filter(|context| context.measures.timed + context.measures.open < context.measures.calls)
        .map(|context| analysis.apis[context.api as usize].object)
        .collect();
    for own in own_code {
        let is_start = !works_later.contains(&own.object) && !counted.contains(&own.object);
        if let Some(start) = starts.get_mut(&own.object).filter(|_| is_start) {
            start.own_ns = Ns(start.own_ns.0.saturating_add(own.ns.0));
        }
    }
    let is_library = |library: u32| {
        let object = analysis.objects.get(library as usize);
        library != program && object.is_some_and(|object| !object.executable && object.name != OWN)
    };
    starts.into_values().filter(|start| is_library(start.library)).collect()
}

/// Returns the caller of the outermost call around each context of a process, by the context's reference.
fn roots(images: &[Image], analysis: &Analysis, process: usize) -> HashMap<u32, u32> {
    let mut roots = HashMap::new();
    let Some(image) = images.get(process) else { return roots };
    let numbers: HashMap<u32, &ThreadRow> = analysis
        .threads
        .iter()
        .filter(|row| row.process == process)
        .map(|row| (row.thread, row))
        .collect();
    for thread in image.recording.threads() {
        let Some(row) = numbers.get(&thread.record().index) else { continue };
        for (context, part) in thread.contexts().zip(&row.contexts) {
            let mut at = &analysis.contexts[part.context as usize];
            while let Some(parent) = at.parent {
                at = &analysis.contexts[parent as usize];
            }
            roots.insert(context.reference, at.caller);
        }
    }
    roots
}
