//! Sections that no signal handler may interrupt.

use crate::sys::set_signal_mask;
use crate::thread::{self, Thread};

/// Signals that an instruction of this thread raises. Blocked, they would end the process; if one
/// comes (a debugger's or a sandbox's), its handler's calls are not recorded.
const SYNCHRONOUS: [i32; 6] =
    [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL, libc::SIGTRAP, libc::SIGSYS];

/// The signals of this thread are blocked for as long as it lives, so that no handler finds our
/// structures half changed, and no cancellation leaves a lock behind.
pub(crate) struct SignalsBlocked {
    before: u64,
    thread: Option<&'static Thread>,
}

impl SignalsBlocked {
    /// Blocks them.
    pub(crate) fn new() -> Self {
        let asynchronous =
            SYNCHRONOUS.iter().fold(u64::MAX, |mask, signal| mask & !(1 << (signal - 1)));
        let before = set_signal_mask(asynchronous);
        let thread = thread::current();
        if let Some(thread) = thread {
            thread.set_busy(true);
        }
        Self { before, thread }
    }
}

impl Drop for SignalsBlocked {
    fn drop(&mut self) {
        if let Some(thread) = self.thread {
            thread.set_busy(false);
        }
        set_signal_mask(self.before);
    }
}
