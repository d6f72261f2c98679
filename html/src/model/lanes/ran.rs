//! What samples found threads to run, as the picture of threads by time has it.

use std::collections::HashMap;

use chase_analyzer::{Analysis, Lane as Events, TimedSample};

use super::super::{Names, RanAt, RanPlace};

/// Most samples of the page: a few hundred kilobytes of it. Where there are more, each of it stands for several.
const SAMPLES: usize = 20_000;

/// Puts samples into the lanes of a page.
pub(super) struct RanPlaces<'n> {
    analysis: &'n Analysis,
    names: &'n dyn Names,
    /// One in so many samples is taken.
    one_of: usize,
    seen: usize,
    pub(super) places: Vec<RanPlace>,
    numbers: HashMap<RanPlace, usize>,
}

impl<'n> RanPlaces<'n> {
    /// For the samples of these lanes.
    pub(super) fn new(lanes: &[&Events], analysis: &'n Analysis, names: &'n dyn Names) -> Self {
        let all: usize = lanes.iter().map(|lane| lane.samples.len()).sum();
        let one_of = all.div_ceil(SAMPLES).max(1);
        Self { analysis, names, one_of, seen: 0, places: Vec::new(), numbers: HashMap::new() }
    }

    /// The samples of a lane.
    pub(super) fn samples_of(&mut self, lane: &Events) -> Vec<RanAt> {
        let mut found = Vec::new();
        for ran in &lane.samples {
            self.seen += 1;
            if self.seen.is_multiple_of(self.one_of) {
                let at_ns = ran.sample.at_ns.as_f64();
                found.push(RanAt { at_ns, place: self.place(lane.process, &ran.sample) });
            }
        }
        found
    }

    fn place(&mut self, process: usize, sample: &TimedSample) -> usize {
        let place = RanPlace {
            library: self.names.object(sample.object).into(),
            is_application: self.analysis.objects[sample.object as usize].executable,
            function: self.names.code(process, &sample.address, sample.object).into(),
            stands_for: sample.stands_for as usize * self.one_of,
        };
        let next = self.places.len();
        let number = *self.numbers.entry(place.clone()).or_insert(next);
        if number == next {
            self.places.push(place);
        }
        number
    }
}
