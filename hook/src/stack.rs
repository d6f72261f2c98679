//! The bounds of a thread's own stack, by which frames on it are distinguished from those of coroutines and signal
//! stacks. If they are unknown, no address counts as being on it: then no frame is ever considered dead by its
//! position.

use core::sync::atomic::{AtomicUsize, Ordering};

use chase_format::layout::{THREAD_CREATED, THREAD_MAIN};

use crate::arch::stack_pointer;
use crate::sys;

/// Bounds of a thread's own stack.
#[derive(Clone, Copy)]
pub(crate) struct Stack {
    low: usize,
    high: usize,
}

/// The maximum assumed size of the main stack, whatever its limit.
const LARGEST: usize = 1 << 27;
/// An address at the end of the main stack, above everything that the process itself has put there.
static END: AtomicUsize = AtomicUsize::new(0);
/// The size of a thread's stack includes the C library's data at its end, at most this much.
const LIBRARY_DATA: usize = 1 << 16;

/// Notes an address at the end of the main stack, where the kernel has put the executable's name.
pub(crate) fn note_end(address: usize) {
    END.store(address, Ordering::Relaxed);
}

/// Returns that address; 0 if it is not known.
pub(crate) fn executable_name() -> usize {
    END.load(Ordering::Relaxed)
}

impl Stack {
    /// Returns a stack that contains no address.
    pub(crate) const fn unknown() -> Self {
        Self { low: 0, high: 0 }
    }

    /// Returns the stack of the calling thread. `kind` says how the thread was found; one whose creation was seen
    /// passes the end and size of its stack. For a thread found after its start, the stack is unknown: it may be
    /// running on any. So may the main thread, when a process is attached to or has forked: then its stack is known only
    /// if it is on it.
    pub(crate) fn of_thread(kind: u32, (end, size): (usize, usize)) -> Self {
        match kind {
            THREAD_MAIN => {
                let limit = sys::limit(libc::RLIMIT_STACK);
                let size = usize::try_from(limit).unwrap_or(usize::MAX).min(LARGEST);
                let high = END.load(Ordering::Relaxed);
                // The kernel keeps this much below the end of the stack free of mappings.
                let stack = Self { low: high.saturating_sub(size), high };
                if stack.holds(stack_pointer()) { stack } else { Self::unknown() }
            }
            THREAD_CREATED => {
                Self { low: end - size.saturating_sub(LIBRARY_DATA).min(end), high: end }
            }
            _ => Self::unknown(),
        }
    }

    /// Whether `address` is on the thread's own stack.
    pub(crate) fn holds(&self, address: usize) -> bool {
        (self.low..self.high).contains(&address)
    }
}
