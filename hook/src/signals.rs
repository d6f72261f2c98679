//! Sections that no signal handler may interrupt.

use crate::recording::is_confined;
use crate::sys::set_signal_mask;
use crate::thread::{self, Thread};

/// Signals that an instruction of this thread raises. Blocked, they would end the process; if one
/// comes (a debugger's or a sandbox's), its handler's calls are not recorded.
const SYNCHRONOUS: [i32; 6] =
    [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL, libc::SIGTRAP, libc::SIGSYS];

/// The signals of this thread are blocked for as long as it lives, so that no handler finds our
/// structures half changed, and no cancellation leaves a lock behind.
pub(crate) struct SignalsBlocked {
    before: Option<u64>,
    thread: Option<&'static Thread>,
}

impl SignalsBlocked {
    /// Blocks them.
    pub(crate) fn new() -> Self {
        let asynchronous =
            SYNCHRONOUS.iter().fold(u64::MAX, |mask, signal| mask & !(1 << (signal - 1)));
        let thread = thread::current();
        // In another such section of this thread they are blocked already. Where the system call may be
        // an offence, the recording changes no more either.
        let before = if is_confined() || thread.is_some_and(Thread::is_busy) {
            None
        } else {
            Some(set_signal_mask(asynchronous))
        };
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
        // (Another thread may have confined the process since. This call is one that programs need.)
        if let Some(before) = self.before {
            set_signal_mask(before);
        }
    }
}
