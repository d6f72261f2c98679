//! How long a thread has run, as far as its own cost is to be compared with that.

use chase_logic::ran::Ran;

use super::Thread;
use crate::{cost, sys};

impl Thread {
    /// Returns for how long the thread has run since its start, in ticks, about. Where the kernel may not be asked, it is taken to
    /// run always.
    ///
    /// It asks seldom: where others want the processor, the kernel rather gives it to them when it is asked what a thread has used.
    pub(crate) fn ran_ticks(&self, ticks_per_us: u64) -> u64 {
        let life = self.life_ticks();
        if self.ran.get().is_old(life) && !sys::is_confined_here() {
            let ns = cost::thread_ns().saturating_sub(self.cpu_before_ns.get());
            self.ran.set(Ran::answered(life, ns.saturating_mul(ticks_per_us) / 1000));
        }
        self.ran.get().of(life)
    }

    /// The same without asking.
    pub(crate) fn ran_so_far(&self) -> u64 {
        self.ran.get().of(self.life_ticks())
    }
}
