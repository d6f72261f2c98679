//! Splits the threads of a run into the parts that workers go through.

use std::ops::Range;

use super::Selection;
use crate::clock::Ns;
use crate::common_time::CommonTime;
use crate::image::Image;
use crate::workers::{PART, parts};

/// The scales that are common to all images.
#[derive(Clone)]
pub(super) struct Scales {
    pub(super) ns_per_reference_tick: f64,
    pub(super) time: CommonTime,
    run_start: Ns,
}

/// Threads of one image, by number in its recording.
pub(super) struct Part {
    pub(super) process: usize,
    pub(super) threads: Range<usize>,
    pub(super) contexts: usize,
}

impl Part {
    /// Returns the selected parts of `images`. They don't depend on the number of workers, so that sums don't either.
    pub(super) fn all(images: &[Image], selection: Selection) -> Vec<Self> {
        let of_image = |(process, image): (usize, &Image)| {
            let sizes = || image.recording.threads().map(|thread| thread.contexts().len());
            // If several threads have one id, the first gets what belongs to no context; so they must be in one part.
            let least = if image.syscalls.is_some() { usize::MAX } else { PART };
            let mut ranges = parts(sizes(), least);
            if ranges.is_empty() {
                ranges.push(0..0);
            }
            let mut sizes = sizes();
            let part = |threads: Range<usize>| {
                let contexts = sizes.by_ref().take(threads.len()).sum();
                Self { process, threads, contexts }
            };
            ranges.into_iter().map(part).collect::<Vec<_>>()
        };
        let selected = images.iter().enumerate().filter(|(at, _)| selection.has_process(*at));
        selected.flat_map(of_image).collect()
    }
}

impl Scales {
    pub(super) fn new(images: &[Image]) -> Self {
        let time = CommonTime::new(images);
        let starts = images.iter().map(|image| time.of_ticks(image, image.start()));
        Self {
            ns_per_reference_tick: images.first().map_or(1.0, |i| i.clock.ns_per_tick()),
            run_start: starts.min().unwrap_or_default(),
            time,
        }
    }

    pub(super) fn since_start(&self, moment: Ns) -> Ns {
        Ns(moment.0.saturating_sub(self.run_start.0))
    }
}
