//! Sections that no signal handler may interrupt.

use crate::arch::current_thread;
use crate::sys::set_signal_mask;
use crate::thread::{Thread, no_thread};

/// Signals that an instruction of this thread raises. Blocked, they would end the process; if one
/// comes (a debugger's or a sandbox's), its handler's calls are not recorded.
const SYNCHRONOUS: [i32; 6] =
    [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL, libc::SIGTRAP, libc::SIGSYS];

/// The signals of this thread are blocked for as long as it lives, so that no handler finds our
/// structures half changed, and no cancellation leaves a lock behind.
pub(crate) struct SignalsBlocked {
    before: u64,
    thread: *mut Thread,
}

impl SignalsBlocked {
    /// Blocks them.
    pub(crate) fn new() -> Self {
        let asynchronous =
            SYNCHRONOUS.iter().fold(u64::MAX, |mask, signal| mask & !(1 << (signal - 1)));
        let before = set_signal_mask(asynchronous);
        let thread = current_thread();
        set_busy(thread, true);
        Self { before, thread }
    }
}

impl Drop for SignalsBlocked {
    fn drop(&mut self) {
        set_busy(self.thread, false);
        set_signal_mask(self.before);
    }
}

fn set_busy(thread: *mut Thread, more: bool) {
    if thread != no_thread() {
        // SAFETY: a thread other than `NO_THREAD` is the calling thread's own.
        unsafe { (*thread).set_busy(more) };
    }
}
