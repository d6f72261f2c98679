//! How long a thread has run, as far as its own cost is to be compared with that.

use core::cell::Cell;

use super::Thread;
use crate::{cost, sys};

/// A thread asks the kernel again when it is so many times as old.
const AGE_FACTOR: u64 = 2;

/// What the kernel last answered.
pub(crate) struct Ran {
    /// The thread's age at that time, and for how much of it it had run; 0: it was not asked yet.
    life_ticks: Cell<u64>,
    ran_ticks: Cell<u64>,
}

impl Ran {
    pub(crate) const fn new() -> Self {
        Self { life_ticks: Cell::new(0), ran_ticks: Cell::new(0) }
    }
}

impl Thread {
    /// Returns for how long the thread has run since its start, in ticks, about: it is assumed to run as large a part of its life as
    /// up to when it last asked the kernel. Where that may not be asked, it is assumed to have run all the time.
    ///
    /// It asks seldom: where others want the processor, the kernel rather gives it to them when it is asked what a thread has used.
    pub(crate) fn ran_ticks(&self, ticks_per_us: u64) -> u64 {
        let life = self.life_ticks();
        if life >= self.ran.life_ticks.get().saturating_mul(AGE_FACTOR) && !sys::is_confined_here()
        {
            let ns = cost::thread_ns().saturating_sub(self.cpu_before_ns.get());
            let ran = (ns.saturating_mul(ticks_per_us) / 1000).min(life);
            self.ran.life_ticks.set(life);
            self.ran.ran_ticks.set(ran);
        }
        self.ran_assumed(life)
    }

    /// The same without asking.
    pub(crate) fn ran_so_far(&self) -> u64 {
        self.ran_assumed(self.life_ticks())
    }

    fn ran_assumed(&self, life: u64) -> u64 {
        let (then, ran) = (self.ran.life_ticks.get(), self.ran.ran_ticks.get());
        let since = life.saturating_sub(then);
        match then {
            0 => life,
            _ => ran + (u128::from(since) * u128::from(ran) / u128::from(then)) as u64,
        }
    }

    /// Forgets what was answered of what it did before its recorded life.
    pub(super) fn forget_ran(&self) {
        self.ran.life_ticks.set(0);
        self.ran.ran_ticks.set(0);
    }
}
