//! Waits that are as long as they are because of a crowded machine: whoever ends them has no processor meanwhile.
//!
//! Who waits for a lock, or at a barrier, for a thread that others keep from running waits for a processor as well. So what such waits
//! are is compared with what the lives of the threads are without all waits for processors, their own and those of the threads that they
//! wait for. Single times off the CPU are known from a millisecond on.

use std::collections::HashMap;

use super::Evidence;
use crate::causes::PathWait;
use crate::clock::Ns;
use crate::spans::{Span, common_ns};

/// What waits of some threads, and their lives, are without waits for processors.
#[derive(Clone, Copy, Debug)]
pub(super) struct Uncrowded {
    pub(super) wait_ns: f64,
    pub(super) life_ns: f64,
}

impl Uncrowded {
    /// The waits as a part of the lives.
    pub(super) fn share(self) -> f64 {
        self.wait_ns / self.life_ns.max(1.0)
    }
}

/// Of `wait_ns` that threads waited, which are the waits for which `is_one` is true.
pub(super) fn uncrowded(
    evidence: &Evidence<'_>,
    threads: &[u32],
    wait_ns: f64,
    is_one: impl Fn(&PathWait) -> bool,
) -> Uncrowded {
    let rows = || threads.iter().map(|&thread| &evidence.analysis.threads[thread as usize]);
    let lives: f64 = rows().map(|row| row.lifetime_ns.as_f64()).sum();
    let ready: f64 = rows().filter_map(|row| row.off_cpu.runnable_ns).map(Ns::as_f64).sum();
    let Some(times) = &evidence.watched.times else {
        return Uncrowded { wait_ns, life_ns: lives };
    };
    let mut without: HashMap<u32, Vec<Span>> = HashMap::new();
    let (mut by_wakers, mut by_own) = (0_u64, 0_u64);
    for &thread in threads {
        for wait in times.get(thread as usize).into_iter().flat_map(|own| &own.waits) {
            if !is_one(&wait.wait) {
                continue;
            }
            let woken = wait.woken_ns.unwrap_or(wait.end_ns).clamp(wait.begin_ns, wait.end_ns);
            by_own = by_own.saturating_add(wait.end_ns - woken);
            let Some(waker) = wait.waker else { continue };
            let spans = without.entry(waker).or_insert_with(|| {
                times.get(waker as usize).map_or_else(Vec::new, |own| own.without_processor())
            });
            by_wakers = by_wakers.saturating_add(common_ns(spans, (wait.begin_ns, woken)));
        }
    }
    let (by_wakers, by_own) = (Ns(by_wakers).as_f64(), Ns(by_own).as_f64());
    Uncrowded {
        wait_ns: (wait_ns - by_wakers - by_own).max(0.0),
        life_ns: (lives - ready - by_wakers).max(0.0),
    }
}
