//! Work on all processors, with the same results whatever their number.

use std::sync::mpsc::{Receiver, sync_channel};
use std::thread::{available_parallelism, scope};

/// Pieces that a worker may be ahead of what was taken: they bound the memory in use.
const AHEAD: usize = 2;

/// Contexts that are worth a part of their own: some 10 MB of a recording.
pub(crate) const PART: usize = 16 << 10;

/// How many threads do the work. What they find does not depend on it.
#[derive(Clone, Copy, Debug)]
pub struct Workers(usize);

impl Workers {
    /// As many as this process has processors.
    #[must_use]
    pub fn all() -> Self {
        Self::new(available_parallelism().map_or(1, usize::from))
    }

    /// `number` of them, at least one.
    #[must_use]
    pub fn new(number: usize) -> Self {
        Self(number.max(1))
    }

    /// Does pieces 0 to `count` of a work and has `take` take what they make, in this order.
    pub(crate) fn in_order<T: Send>(
        self,
        count: usize,
        work: impl Fn(usize) -> T + Sync,
        mut take: impl FnMut(T),
    ) {
        let workers = self.0.min(count);
        if workers <= 1 {
            (0..count).for_each(|at| take(work(at)));
            return;
        }
        let work = &work;
        scope(|scope| {
            let start = |first: usize| -> Receiver<T> {
                let (sender, receiver) = sync_channel(AHEAD);
                scope.spawn(move || {
                    let mut own = (first..count).step_by(workers);
                    // Nobody takes any more if `take` panicked.
                    own.all(|at| sender.send(work(at)).is_ok());
                });
                receiver
            };
            let made: Vec<_> = (0..workers).map(start).collect();
            // A worker that panics ends this, and the scope passes its panic on.
            (0..count).map_while(|at| made[at % workers].recv().ok()).for_each(take);
        });
    }
}

/// Ranges of consecutive items, each of at least `least` in all (but the last), by the size of each.
pub(crate) fn parts(
    sizes: impl Iterator<Item = usize>,
    least: usize,
) -> Vec<std::ops::Range<usize>> {
    let mut parts = Vec::new();
    let (mut start, mut sum, mut end) = (0, 0_usize, 0);
    for size in sizes {
        sum = sum.saturating_add(size);
        end += 1;
        if sum >= least {
            parts.push(start..end);
            (start, sum) = (end, 0);
        }
    }
    if start < end {
        parts.push(start..end);
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_in_order_whoever_made_them() {
        for workers in [1, 2, 3, 8] {
            let mut taken = Vec::new();
            Workers::new(workers).in_order(100, |at| at * at, |square| taken.push(square));
            assert_eq!(taken, (0..100).map(|at| at * at).collect::<Vec<_>>());
        }
    }

    #[test]
    fn parts_are_of_the_least_size() {
        assert_eq!(parts([5, 1, 1, 9, 2].into_iter(), 6), [0..2, 2..4, 4..5]);
        assert_eq!(parts([].into_iter(), 6), []);
    }
}
