//! Sections that no signal handler may interrupt.

use crate::abi::ThreadHead;
use crate::arch::current_thread;
use crate::sys::{is_confined, set_signal_mask};

/// Signals that an instruction of this thread raises. If they were blocked, they would end the process. If one comes
/// (from a debugger or sandbox), its handler's calls are not recorded.
const SYNCHRONOUS: [i32; 6] =
    [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL, libc::SIGTRAP, libc::SIGSYS];

/// Blocks the signals of this thread as long as it lives, so that no handler finds our structures half changed, and
/// no cancellation leaves a lock held.
pub(crate) struct SignalsBlocked {
    before: Option<u64>,
    thread: Option<&'static ThreadHead>,
}

impl SignalsBlocked {
    /// Blocks the thread's signals.
    pub(crate) fn new() -> Self {
        let asynchronous =
            SYNCHRONOUS.iter().fold(u64::MAX, |mask, signal| mask & !(1 << (signal - 1)));
        // SAFETY: it is the calling thread's own, which exists until the thread ends, or the placeholder.
        let thread = Some(unsafe { &*current_thread() }).filter(|head| !head.is_nobody);
        // In a nested section they are blocked already. Where the system call may be forbidden, the recording doesn't
        // change any more.
        let before = if is_confined() || thread.is_some_and(|head| head.busy.get() > 0) {
            None
        } else {
            Some(set_signal_mask(asynchronous))
        };
        if let Some(head) = thread {
            head.busy.set(head.busy.get() + 1);
        }
        Self { before, thread }
    }
}

impl Drop for SignalsBlocked {
    fn drop(&mut self) {
        if let Some(head) = self.thread {
            head.busy.set(head.busy.get() - 1);
        }
        // (Another thread may have confined the process since. Programs need this call themselves, so it is allowed.)
        if let Some(before) = self.before {
            set_signal_mask(before);
        }
    }
}
