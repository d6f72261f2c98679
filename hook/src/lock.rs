//! A lock for the slow paths. It is taken with signals blocked, is never held while application
//! code or the C library runs (but for the loader's own walk), and is reset in a fork's child.

use core::sync::atomic::{AtomicU32, Ordering};

use crate::sys;

const FREE: u32 = 0;
const HELD: u32 = 1;
const CONTENDED: u32 = 2;

/// Mutual exclusion between threads.
pub(crate) struct Lock(AtomicU32);

impl Lock {
    pub(crate) const fn new() -> Self {
        Self(AtomicU32::new(FREE))
    }

    /// Waits for the lock; it is released when the result is dropped.
    pub(crate) fn hold(&self) -> Held<'_> {
        self.acquire();
        Held(self)
    }

    /// Waits for the lock; the caller releases it.
    pub(crate) fn acquire(&self) {
        if self.0.compare_exchange(FREE, HELD, Ordering::Acquire, Ordering::Relaxed).is_ok() {
            return;
        }
        while self.0.swap(CONTENDED, Ordering::Acquire) != FREE {
            sys::futex_wait(&self.0, CONTENDED);
        }
    }

    pub(crate) fn release(&self) {
        if self.0.swap(FREE, Ordering::Release) == CONTENDED {
            sys::futex_wake(&self.0);
        }
    }

    /// In a fork's child, whose only thread holds nothing.
    pub(crate) fn reset(&self) {
        self.0.store(FREE, Ordering::Relaxed);
    }
}

/// The lock is held for as long as this lives.
pub(crate) struct Held<'a>(&'a Lock);

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.0.release();
    }
}
