//! Distributes work over all processors, with results that don't depend on their number.

use std::sync::mpsc::{Receiver, sync_channel};
use std::thread::{available_parallelism, scope};

/// How many pieces a worker may be ahead of what was taken, which bounds memory.
const AHEAD: usize = 2;

/// How many contexts make up a part: some 10 MB of a recording.
pub(crate) const PART: usize = 16 << 10;

/// The number of worker threads. Results don't depend on it.
#[derive(Clone, Copy, Debug)]
pub struct Workers(usize);

impl Workers {
    /// As many as this process may use processors.
    #[must_use]
    pub fn all() -> Self {
        Self::new(available_parallelism().map_or(1, usize::from))
    }

    /// Returns `number` workers, at least one.
    #[must_use]
    pub fn new(number: usize) -> Self {
        Self(number.max(1))
    }

    /// Computes pieces 0 to `count` and passes the results to `take`, in this order.
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
                    // If `take` panicked, nobody receives any more.
                    own.all(|at| sender.send(work(at)).is_ok());
                });
                receiver
            };
            let made: Vec<_> = (0..workers).map(start).collect();
            // If a worker panics, this ends, and the scope passes the panic on.
            (0..count).map_while(|at| made[at % workers].recv().ok()).for_each(take);
        });
    }
}

/// Divides items into ranges of consecutive ones with a total size of at least `least` each (except the last).
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
