//! Merges the calling-context trees of threads and processes.

use foldhash::HashMap;

use crate::sums::Sums;
use crate::walk::{Forest, NOBODY};

/// Contexts, callers before callees.
#[derive(Default)]
pub(crate) struct Contexts {
    pub(crate) list: Vec<Merged>,
    numbers: HashMap<(u32, u32), u32>,
}

/// A context, by its innermost call.
pub(crate) struct Merged {
    /// Number of the caller, or [`NOBODY`].
    pub(crate) caller: u32,
    pub(crate) import: u32,
    pub(crate) sums: Sums,
}

impl Contexts {
    /// Returns the number of the context of `import` called in `caller`.
    pub(crate) fn number(&mut self, caller: u32, import: u32) -> u32 {
        let next = self.list.len() as u32;
        let number = *self.numbers.entry((caller, import)).or_insert(next);
        if number == next {
            self.list.push(Merged { caller, import, sums: Sums::default() });
        }
        number
    }

    /// Adds the contexts of a part, whose imports have the numbers `imports` here. Returns the numbers of its
    /// contexts here.
    pub(crate) fn merge(&mut self, part: Self, imports: &[u32]) -> Vec<u32> {
        let mut numbers: Vec<u32> = Vec::with_capacity(part.list.len());
        for Merged { caller, import, mut sums } in part.list {
            for callers in [&mut sums.callers, &mut sums.long_callers].into_iter().flatten() {
                callers.renumber(imports);
            }
            let caller = if caller == NOBODY { NOBODY } else { numbers[caller as usize] };
            let number = self.number(caller, imports[import as usize]);
            let own = &mut self.list[number as usize].sums;
            own.add(&sums);
            own.total_is_cut |= sums.total_is_cut;
            numbers.push(number);
        }
        numbers
    }

    /// Computes totals from self times.
    pub(crate) fn sum_totals(&mut self) {
        for at in (0..self.list.len()).rev() {
            let context = &mut self.list[at];
            context.sums.total_ns += context.sums.self_ns;
            context.sums.within_ns = context.sums.total_ns;
            let (caller, total_ns) = (context.caller, context.sums.total_ns);
            if caller != NOBODY {
                self.list[caller as usize].sums.total_ns += total_ns;
            }
        }
    }

    pub(crate) fn forest(&self) -> Forest {
        Forest::new(self.list.iter().map(|context| context.caller))
    }

    /// Returns the forest with the most expensive contexts first.
    pub(crate) fn forest_by_cost(&self) -> Forest {
        let mut order: Vec<u32> = (0..self.list.len() as u32).collect();
        let key = |at: &u32| self.list[*at as usize].sums.total_ns;
        order.sort_by(|a, b| key(a).total_cmp(&key(b)));
        let callers = order.iter().map(|&at| (at, self.list[at as usize].caller));
        Forest::in_order(self.list.len(), callers)
    }
}
