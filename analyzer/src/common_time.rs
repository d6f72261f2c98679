//! A common clock for all images of a run.

use std::collections::HashMap;

use chase_recorder::layout::ClockPair;

use crate::clock::{Ns, Ticks};
use crate::image::Image;

/// The common time of images: `CLOCK_MONOTONIC` if all are of one boot; otherwise ns since 1970, by the wall clock at
/// the start of each boot.
#[derive(Clone, Debug)]
pub(crate) struct CommonTime {
    /// The start of each boot in ns.
    boots: HashMap<[u8; 16], u64>,
}

impl CommonTime {
    pub(crate) fn new(images: &[Image]) -> Self {
        let mut boots = HashMap::new();
        for image in images {
            let header = image.recording.header();
            let ClockPair { monotonic_ns, realtime_ns, .. } = header.clock_start;
            let start = realtime_ns.saturating_sub(monotonic_ns);
            boots
                .entry(header.boot_id)
                .and_modify(|first| *first = start.min(*first))
                .or_insert(start);
        }
        if boots.len() == 1 {
            boots.clear();
        }
        Self { boots }
    }

    /// Converts a moment of the clock of `image`.
    pub(crate) fn of_ticks(&self, image: &Image, moment: Ticks) -> Ns {
        self.of_monotonic(image, image.clock.monotonic(moment).0)
    }

    /// Converts ns of `CLOCK_MONOTONIC` on the machine of `image`.
    pub(crate) fn of_monotonic(&self, image: &Image, ns: u64) -> Ns {
        let boot = self.boots.get(&image.recording.header().boot_id).copied().unwrap_or(0);
        Ns(boot.saturating_add(ns))
    }
}
