//! Where a thread's own stack is, so that frames on it can be told from those of coroutines and
//! signal stacks. Where it can't be known, no address is on it: then nothing is ever proved dead by
//! position.

use chase_format::layout::{THREAD_CREATED, THREAD_MAIN};

use crate::arch::stack_pointer;
use crate::sys;

/// Bounds of a thread's own stack.
#[derive(Clone, Copy)]
pub(crate) struct Stack {
    low: usize,
    high: usize,
}

/// The main stack is never taken to be larger than this, whatever its limit.
const LARGEST: usize = 1 << 27;
/// The main stack reaches up to the strings of the environment; this is beyond them.
const ARGUMENTS: usize = 8 << 20;
/// The size of a thread's stack includes what the C library keeps at its end, at most this much.
const LIBRARY_DATA: usize = 1 << 16;

impl Stack {
    /// A stack that holds nothing.
    pub(crate) const fn unknown() -> Self {
        Self { low: 0, high: 0 }
    }

    /// The stack of the calling thread, which came to be in this way; for one whose creation was seen, with the end and
    /// size of what it was given. That of a thread that was found in mid-life is not known:
    /// it may be running on any.
    pub(crate) fn of_thread(kind: u32, (end, size): (usize, usize)) -> Self {
        match kind {
            THREAD_MAIN => {
                // The kernel keeps this much below the start of the stack free of mappings.
                let limit = sys::limit(libc::RLIMIT_STACK);
                let size = usize::try_from(limit).unwrap_or(usize::MAX).min(LARGEST);
                let sp = stack_pointer();
                Self { low: sp.saturating_sub(size), high: sp + ARGUMENTS }
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
