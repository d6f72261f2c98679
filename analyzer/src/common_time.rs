//! One clock for all images of a run.

use std::collections::HashMap;

use chase_recorder::layout::ClockPair;

use crate::clock::{Ns, Ticks};
use crate::image::Image;

/// One time for images of several boots: `CLOCK_MONOTONIC` where there is but one, and otherwise
/// 1970's, by the wall clock at the start of each boot.
#[derive(Clone, Debug)]
pub(crate) struct CommonTime {
    /// Start of each boot, ns.
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

    /// A moment on the clock of `image`.
    pub(crate) fn from_ticks(&self, image: &Image, moment: Ticks) -> Ns {
        self.of_monotonic(image, image.clock.monotonic(moment).0)
    }

    /// A moment of `CLOCK_MONOTONIC`, ns, on the machine of `image`.
    pub(crate) fn of_monotonic(&self, image: &Image, ns: u64) -> Ns {
        let boot = self.boots.get(&image.recording.header().boot_id).copied().unwrap_or(0);
        Ns(boot.saturating_add(ns))
    }
}
