//! From where calls are made, by the samples of them that the hook keeps the place of, and by those that are long.

use std::collections::BTreeMap;

use crate::names::{Names, Site};
use crate::rows::CallPlace;

/// The most places of a row.
const MOST: usize = 8;

/// The samples of one place, and how many calls these stand for; or its long calls, and how many nanoseconds they took.
#[derive(Clone, Copy, Debug, Default)]
struct Weight {
    samples: u64,
    amount: u64,
}

impl Weight {
    fn add(&mut self, other: Self) {
        self.samples = self.samples.saturating_add(other.samples);
        self.amount = self.amount.saturating_add(other.amount);
    }
}

/// Sums over the places of calls. A place is kept as the number of an import as called from there.
#[derive(Clone, Debug, Default)]
pub(crate) struct CallerSums(BTreeMap<u32, Weight>);

impl CallerSums {
    /// Adds samples at the place of `import`, and how many calls they stand for; or long calls, and their nanoseconds.
    pub(crate) fn add_place(&mut self, import: u32, samples: u64, amount: u64) {
        self.0.entry(import).or_default().add(Weight { samples, amount });
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
        self.rows_of(names, 0)
    }

    /// Returns the places with the most time of long calls, most first, and their shares of the time of all calls.
    pub(crate) fn rows_of_long(&self, names: &Names, total_ns: f64) -> Vec<CallPlace> {
        self.rows_of(names, total_ns as u64)
    }

    /// The places, with their shares of all that is known, or of `at_least` if that is more.
    fn rows_of(&self, names: &Names, at_least: u64) -> Vec<CallPlace> {
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
        places.sort_by_key(|(_, _, weight)| std::cmp::Reverse((weight.amount, weight.samples)));
        places.iter().skip(MOST).for_each(|(.., weight)| rest.add(*weight));
        let all = all.amount.max(at_least).max(1);
        let share = |weight: Weight| weight.amount as f64 / all as f64;
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
