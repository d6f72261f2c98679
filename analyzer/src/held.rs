//! How long locks are held, as far as long waits show it.
//!
//! A thread that had to wait for a lock has it from the end of its wait on. If another thread waits for the same lock at that
//! moment, and the first one wakes it later, the first one had the lock in between: nobody could have taken it meanwhile without being
//! waited for. So what is known is how long a lock is held that others wait for all the time, and of waits that are recorded
//! one by one. That stands for the rest, and is an estimate.

use std::collections::HashMap;

use serde::Serialize;

use crate::analysis::Analysis;
use crate::causes::{LockKey, NamingPlaces, lock_key};
use crate::clock::Ns;
use crate::groups::Groups;
use crate::image::Image;
use crate::long_waits::long_waits;

/// How long a lock was held, each time that both ends were seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Held {
    /// How often both ends were seen.
    pub sections: usize,
    /// Median of these.
    pub median_ns: Ns,
    /// The longest of these.
    pub max_ns: Ns,
}

/// How long locks are held.
#[derive(Debug, Default)]
pub struct HeldLocks {
    of_locks: HashMap<LockKey, Held>,
}

/// A long wait for one lock; times in ns.
struct Wait {
    thread: u32,
    begin: u64,
    woken: Option<u64>,
    end: u64,
    waker: Option<u32>,
}

impl HeldLocks {
    /// What long waits show; nothing where no companion has seen any. `images` are those of `analysis`.
    #[must_use]
    pub fn new(
        images: &[Image],
        analysis: &Analysis,
        groups: &Groups,
        naming: &dyn NamingPlaces,
    ) -> Self {
        let mut of_locks: HashMap<LockKey, Vec<Wait>> = HashMap::new();
        for (thread, times) in (0..).zip(long_waits(images, analysis, groups, naming)) {
            for long in times.waits {
                // (All that wait for a file are woken at once, and try again: who has it then does not show.)
                let key = lock_key(&long.wait.object, long.wait.process);
                let Some(key @ LockKey::Word(..)) = key else { continue };
                of_locks.entry(key).or_default().push(Wait {
                    thread,
                    begin: long.begin_ns,
                    woken: long.woken_ns,
                    end: long.end_ns,
                    waker: long.waker,
                });
            }
        }
        let held = |(key, waits): (LockKey, Vec<Wait>)| Some((key, held(&sections(&waits))?));
        Self { of_locks: of_locks.into_iter().filter_map(held).collect() }
    }

    pub(crate) fn of_lock(&self, key: &LockKey) -> Option<Held> {
        self.of_locks.get(key).copied()
    }
}

/// How long each thread had the lock, where that is certain.
fn sections(waits: &[Wait]) -> Vec<u64> {
    let mut by_end: Vec<&Wait> = waits.iter().collect();
    by_end.sort_by_key(|wait| wait.end);
    let mut first: HashMap<(u32, u64), u64> = HashMap::new();
    for next in waits {
        let (Some(released), Some(holder)) = (next.woken, next.waker) else { continue };
        // The holder's latest wait that was over by then. If it waited again meanwhile, it had lost the lock.
        let over = by_end.partition_point(|wait| wait.end <= released);
        let Some(own) = by_end[..over].iter().rev().find(|wait| wait.thread == holder) else {
            continue;
        };
        if next.begin <= own.end && next.thread != holder {
            let earliest = first.entry((holder, own.end)).or_insert(released);
            *earliest = released.min(*earliest);
        }
    }
    let mut sections: Vec<u64> =
        first.into_iter().map(|((_, acquired), released)| released - acquired).collect();
    sections.sort_unstable();
    sections
}

/// `sections` are in order.
fn held(sections: &[u64]) -> Option<Held> {
    let max_ns = Ns(*sections.last()?);
    Some(Held { sections: sections.len(), median_ns: Ns(sections[sections.len() / 2]), max_ns })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wait(thread: u32, begin: u64, end: u64, waker: u32) -> Wait {
        Wait { thread, begin, woken: Some(end), end, waker: Some(waker) }
    }

    #[test]
    fn a_lock_that_is_waited_for_all_the_time_is_held_from_wake_to_wake() {
        // Thread 0 has it first, nobody knows since when; then 1 for 10, then 2 for 12, then 0 again, which nobody waits for.
        let waits = [wait(1, 0, 8, 0), wait(2, 1, 18, 1), wait(0, 9, 30, 2)];
        assert_eq!(sections(&waits), [10, 12]);
        let held = held(&sections(&waits)).expect("sections");
        assert_eq!(held, Held { sections: 2, median_ns: Ns(12), max_ns: Ns(12) });
    }

    #[test]
    fn nothing_is_said_of_a_lock_that_was_free_meanwhile() {
        // When 1 gets it, nobody else waits: it may have let go of it before 2 came.
        assert!(sections(&[wait(1, 0, 8, 0), wait(2, 20, 30, 1)]).is_empty());
        // 1 waits once more before it wakes 2: only its second turn is known.
        let waits = [wait(1, 0, 8, 0), wait(2, 1, 40, 1), wait(1, 12, 33, 0)];
        assert_eq!(sections(&waits), [7]);
        // Who ended the wait is not known, or is no thread.
        let waits = [wait(1, 0, 8, 0), Wait { waker: None, ..wait(2, 1, 18, 1) }];
        assert!(held(&sections(&waits)).is_none());
    }
}
