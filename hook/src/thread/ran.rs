//! How long a thread has run, as far as its own cost is to be compared with that.

use core::cell::Cell;

use super::Thread;
use crate::{clock, cost, sys};

/// A thread asks the kernel again once it may have run for less than is assumed by one part in so many.
const EXACTNESS: u64 = 8;

/// What the kernel last answered.
pub(crate) struct Ran {
    /// When it was asked; 0: never.
    at_ticks: Cell<u64>,
    ran_ticks: Cell<u64>,
}

impl Ran {
    pub(crate) const fn new() -> Self {
        Self { at_ticks: Cell::new(0), ran_ticks: Cell::new(0) }
    }
}

impl Thread {
    /// Returns for how long the thread has run since its start, in ticks, or up to an eighth more: it is assumed to have run
    /// since the kernel was last asked, so a thread that always runs hardly ever asks.
    pub(crate) fn ran_ticks(&self, ticks_per_us: u64) -> u64 {
        let (at, ran) = (self.ran.at_ticks.get(), self.ran.ran_ticks.get());
        let since = clock::now().saturating_sub(at);
        if since <= ran / EXACTNESS { ran + since } else { self.ask_ran_ticks(ticks_per_us) }
    }

    /// Asks the kernel for how long the thread has run since its start, in ticks. Where it may not be asked, the thread is
    /// assumed to have run all the time.
    pub(crate) fn ask_ran_ticks(&self, ticks_per_us: u64) -> u64 {
        let life = self.life_ticks();
        if sys::is_confined_here() {
            return life;
        }
        let ns = cost::thread_ns().saturating_sub(self.cpu_before_ns.get());
        let ran = (ns.saturating_mul(ticks_per_us) / 1000).min(life);
        self.ran.at_ticks.set(clock::now());
        self.ran.ran_ticks.set(ran);
        ran
    }

    /// Forgets what was answered of what it did before its recorded life.
    pub(super) fn forget_ran(&self) {
        self.ran.at_ticks.set(0);
        self.ran.ran_ticks.set(0);
    }
}
