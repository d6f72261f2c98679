//! Threads that are not to be recorded (`CHASE_THREADS`).
//!
//! Such a thread has a [`Thread`] all the same, for what concerns the process: loads, forks, threads that it creates. But its record says
//! that it is none, and its countdowns begin at the highest number, again and again, so that hardly any of its calls takes the slow path.

use core::sync::atomic::{AtomicU32, Ordering};

use chase_format::layout::{THREAD_FREE, THREAD_LEFT_OUT};

use super::Thread;
use crate::recording::{self, Lost};
use crate::signals::SignalsBlocked;
use chase_logic::pending::Pending;

impl Thread {
    /// Leaves this thread out of the recording, which has nothing of its calls yet.
    pub(crate) fn leave_out(&self) {
        let _signals = SignalsBlocked::new();
        // SAFETY: as in `count_untimed`. Readers take a record with this state and a thread's id for one that is not theirs.
        unsafe {
            (*self.record.get()).origin = THREAD_LEFT_OUT;
            AtomicU32::from_ptr(&raw mut (*self.record.get()).state)
                .store(THREAD_FREE, Ordering::Release);
        }
        self.is_left_out.set(true);
        self.leave_events();
        self.expect_fork();
        recording::unseen(Lost::LeftOut);
    }

    pub(crate) fn is_left_out(&self) -> bool {
        self.is_left_out.get()
    }

    /// Lets the next calls of `slot` by this thread, which is left out, run without the slow path: unless something is to be done
    /// at its next call.
    pub(crate) fn pass_calls(&self, slot: u32) {
        if self.pending.get() == Pending::NONE
            && let Some(counts) = self.counts.get()
        {
            counts.pass_calls(slot);
        }
    }

    /// Ends that: the next call takes the slow path.
    pub(super) fn stop_passing(&self) {
        if self.is_left_out()
            && let Some(counts) = self.counts.get()
        {
            counts.stop_passing();
        }
    }
}
