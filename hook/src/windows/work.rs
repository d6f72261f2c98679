//! How long the process has worked.
//!
//! With one thread that is its CPU time: it makes no calls while it sleeps. With several, the kernel adds
//! the CPU time of others that run only at its ticks, which are longer than a window. So it is the time
//! that has passed, unless the process can't have worked that long. (What it sleeps for shorter falls into
//! windows and pauses in proportion to how long they are, so that it makes no difference.)

use crate::{clock, sampling, sys};

/// The kernel's ticks, at most: `CONFIG_HZ=100`.
const TICK_NS: u64 = 10_000_000;

/// Now, by the clock of the recording and by that of the process.
#[derive(Clone, Copy)]
pub(super) struct Moment {
    pub(super) ticks: u64,
    pub(super) ticks_per_us: u64,
    cpu_ns: u64,
    has_threads: bool,
}

/// Work between two moments, ns.
#[derive(Clone, Copy)]
pub(super) struct Work {
    /// CPU time, of all threads.
    pub(super) cpu_ns: u64,
    /// The time in which it was done.
    pub(super) time_ns: u64,
}

/// CPU time of the process. This is where the kernel finds that a thread's time slice is over: whoever
/// holds a lock while it asks may well be interrupted there.
pub(super) fn cpu_ns() -> u64 {
    sys::clock_ns(libc::CLOCK_PROCESS_CPUTIME_ID)
}

impl Moment {
    /// `cpu_ns`: what [`cpu_ns`] gave just before.
    pub(super) fn now(cpu_ns: u64) -> Self {
        Self {
            ticks: clock::now(),
            ticks_per_us: clock::ticks_per_us().unwrap_or(1),
            cpu_ns,
            has_threads: sampling::has_threads(),
        }
    }

    /// Now, where others may have worked meanwhile.
    pub(super) fn renewed(self) -> Self {
        if self.has_threads { Self { ticks: clock::now(), ..self } } else { self }
    }

    /// Now, without the work since then where it was this thread's alone.
    pub(super) fn without_own_work(self) -> Self {
        if self.has_threads { self.renewed() } else { Self::now(cpu_ns()) }
    }

    /// The work since an earlier moment.
    pub(super) fn since(self, earlier: Self) -> Work {
        let cpu_ns = self.cpu_ns.saturating_sub(earlier.cpu_ns);
        if !self.has_threads {
            return Work { cpu_ns, time_ns: cpu_ns };
        }
        let ticks = self.ticks.saturating_sub(earlier.ticks);
        let passed_ns = ticks.saturating_mul(1000) / self.ticks_per_us.max(1);
        Work { cpu_ns, time_ns: passed_ns.min(cpu_ns + 2 * TICK_NS) }
    }
}
