//! From where calls are made, by the samples of them that the hook keeps the place of.

use std::collections::BTreeMap;

use crate::names::{Names, Site};
use crate::rows::CallPlace;

/// The most places of a row.
const MOST: usize = 8;

/// The samples of one place, and how many calls these stand for.
#[derive(Clone, Copy, Debug, Default)]
struct Weight {
    samples: u64,
    calls: u64,
}

impl Weight {
    fn add(&mut self, other: Self) {
        self.samples = self.samples.saturating_add(other.samples);
        self.calls = self.calls.saturating_add(other.calls);
    }
}

/// Sums over the places of calls. A place is kept as the number of an import as called from there.
#[derive(Clone, Debug, Default)]
pub(crate) struct CallerSums(BTreeMap<u32, Weight>);

impl CallerSums {
    /// Adds samples at the place of `import`, and how many calls they stand for.
    pub(crate) fn add_place(&mut self, import: u32, samples: u64, calls: u64) {
        self.0.entry(import).or_default().add(Weight { samples, calls });
    }

    pub(crate) fn add(&mut self, other: &Self) {
        for (&import, &weight) in &other.0 {
            self.0.entry(import).or_default().add(weight);
        }
    }

    /// Gives imports the numbers that they have in the whole run.
    pub(crate) fn renumber(&mut self, imports: &[u32]) {
        let mut renumbered = Self::default();
        for (import, weight) in std::mem::take(&mut self.0) {
            renumbered.0.entry(imports[import as usize]).or_default().add(weight);
        }
        *self = renumbered;
    }

    /// Returns the places with the most calls, most first, and at last what is not known of others, if there are any.
    pub(crate) fn rows(&self, names: &Names) -> Vec<CallPlace> {
        let mut by_place: BTreeMap<(u32, u64), (Site, usize, Weight)> = BTreeMap::new();
        let (mut rest, mut all) = (Weight::default(), Weight::default());
        for (&import, &weight) in &self.0 {
            all.add(weight);
            let process = names.process_of[import as usize];
            match names.imports[import as usize].site {
                Some(site) => {
                    let key = (site.object, site.svma);
                    by_place.entry(key).or_insert((site, process, Weight::default())).2.add(weight);
                }
                None => rest.add(weight),
            }
        }
        let mut places: Vec<_> = by_place.into_values().collect();
        places.sort_by_key(|(_, _, weight)| std::cmp::Reverse((weight.calls, weight.samples)));
        places.iter().skip(MOST).for_each(|(.., weight)| rest.add(*weight));
        let share = |weight: Weight| weight.calls as f64 / all.calls.max(1) as f64;
        let named = places.into_iter().take(MOST).map(|(site, process, weight)| CallPlace {
            address: Some(site.address()),
            process,
            samples: weight.samples,
            share: share(weight),
        });
        let (process, samples) = (0, rest.samples);
        let rest = (samples > 0).then(|| CallPlace {
            address: None,
            process,
            samples,
            share: share(rest),
        });
        named.chain(rest).collect()
    }
}
