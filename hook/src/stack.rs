//! Where a thread's own stack is, so that frames on it can be told from those of coroutines and
//! signal stacks. Where it can't be known, no address is on it: then nothing is ever proved dead by
//! position.

use core::sync::atomic::{AtomicUsize, Ordering};

use chase_format::layout::{THREAD_CREATED, THREAD_MAIN};

use crate::arch::stack_pointer;
use crate::thread::Origin;
use crate::{maps, sys};

/// Bounds of a thread's own stack.
pub(crate) struct Stack {
    /// Lowest address; [`UNKNOWN`] until it is first asked for.
    low: AtomicUsize,
    /// End; 0 if there is no way to know.
    high: usize,
}

const UNKNOWN: usize = usize::MAX;
/// The main stack is never taken to be larger than this, whatever its limit.
const LARGEST: usize = 1 << 27;

impl Stack {
    /// A stack that holds nothing.
    pub(crate) const fn unknown() -> Self {
        Self { low: AtomicUsize::new(UNKNOWN), high: 0 }
    }

    /// The stack of the calling thread. That of a thread that was found in mid-life is not known:
    /// it may be running on any.
    pub(crate) fn of_thread(origin: &Origin) -> Self {
        match origin.kind {
            THREAD_MAIN => {
                let sp = stack_pointer();
                // The kernel keeps this much below the start of the stack free of mappings.
                let limit = sys::limit(libc::RLIMIT_STACK as u32);
                let size = usize::try_from(limit).unwrap_or(usize::MAX).min(LARGEST);
                Self { low: AtomicUsize::new(sp.saturating_sub(size)), high: main_stack_end(sp) }
            }
            THREAD_CREATED => Self { low: AtomicUsize::new(UNKNOWN), high: origin.stack_end },
            _ => Self::unknown(),
        }
    }

    /// Whether `address` is on the thread's own stack.
    pub(crate) fn holds(&self, address: usize) -> bool {
        if address >= self.high {
            return false;
        }
        let mut low = self.low.load(Ordering::Relaxed);
        if low == UNKNOWN {
            // The mapping ends at the stack's guard below; above it may have grown together with
            // others, which is why the end is where the thread began.
            low = maps::start_of_mapping(self.high - 1).unwrap_or(self.high);
            self.low.store(low, Ordering::Relaxed);
        }
        address >= low
    }
}

/// The main stack reaches up to the strings of the environment, about; everything of it that can
/// hold a frame is below the caller's arguments, within a few megabytes.
fn main_stack_end(sp: usize) -> usize {
    const ARGUMENTS: usize = 8 << 20;
    sp + ARGUMENTS
}
