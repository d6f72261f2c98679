//! Samples of what ran, on the clock of the run.

use std::collections::HashMap;

use chase_recorder::syscalls::{MappingRow, SampleRow};
use serde::Serialize;

use crate::address::CodeAddress;
use crate::analysis::Analysis;
use crate::causes::Run;
use crate::clock::Ns;
use crate::common_time::CommonTime;
use crate::groups::{Groups, Unnamed};
use crate::image::Image;
use crate::on_cpu::name_outside;
use crate::run_start::start;

/// A sample with its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct TimedSample {
    /// When it was taken, since the start of the run.
    pub at_ns: Ns,
    /// The object whose code ran, or made the system call, by number in [`Analysis::objects`].
    pub object: u32,
    /// The innermost library call that the thread was in, by number in [`Analysis::apis`]; `None`: it was in none.
    pub api: Option<u32>,
    /// How many samples it stands for, since in long runs not each has its time.
    pub stands_for: u32,
    /// Whether it was in the kernel.
    pub is_in_kernel: bool,
    /// The address of the code in user space.
    #[serde(skip)]
    pub address: CodeAddress,
    /// The context in the recording, as its thread has it.
    #[serde(skip)]
    pub(crate) context_ref: u32,
}

/// Returns the samples of each thread of `analysis` in the order of their times, as far as they are in its life.
pub(crate) fn timed_samples(
    images: &[Image],
    analysis: &Analysis,
    groups: &Groups,
) -> Vec<Vec<TimedSample>> {
    let mut of_threads: Vec<Vec<TimedSample>> = vec![Vec::new(); analysis.threads.len()];
    let files =
        || images.iter().enumerate().filter_map(|(at, image)| Some((at, image.syscalls.as_ref()?)));
    if files().all(|(_, file)| file.timed_samples().next().is_none()) {
        return of_threads;
    }
    let run = Run::new(images, analysis, groups, &Unnamed);
    let time = CommonTime::new(images);
    let Some(start) = start(images, analysis, &time) else { return of_threads };
    let objects: HashMap<&str, u32> =
        (0..).zip(&analysis.objects).map(|(number, row)| (&*row.path, number)).collect();
    for (process, file) in files() {
        let mappings: Vec<MappingRow> = file.mappings().collect();
        // Each place that samples found: the thread, and the sample without its time.
        let place = |row: SampleRow| {
            let (thread, api) = run.place(process, row.context_ref, row.tid);
            let addresses = run.addresses(process)?;
            let address = addresses.find_ever(row.address);
            let by_name =
                || objects.get(&*name_outside(addresses, &mappings, row.address)).copied();
            let object = address.object.or_else(by_name)?;
            let sample = TimedSample {
                at_ns: Ns(0),
                object,
                api,
                stands_for: 1,
                is_in_kernel: false,
                address,
                context_ref: row.context_ref,
            };
            Some((thread? as usize, sample))
        };
        let places: Vec<Option<(usize, TimedSample)>> = file.samples().map(place).collect();
        for row in file.timed_samples() {
            let Some(&Some((thread, sample))) = places.get(row.row as usize) else { continue };
            let Some(own) = analysis.threads.get(thread) else { continue };
            let at_ns = Ns(time.of_monotonic(&images[process], row.at_ns).0.saturating_sub(start));
            // The companion may have seen it before it was recorded, and until after that.
            if (own.start_ns..=own.end_ns).contains(&at_ns) {
                let stands_for = u32::from(row.stands_for.max(1));
                let is_in_kernel = row.in_kernel != 0;
                let sample = TimedSample { at_ns, stands_for, is_in_kernel, ..sample };
                of_threads[thread].push(sample);
            }
        }
    }
    for samples in &mut of_threads {
        samples.sort_by_key(|sample| sample.at_ns);
    }
    of_threads
}
