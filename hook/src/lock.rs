//! A lock for the slow paths. It is taken with signals blocked, is never held while application code or the C library
//! runs (except for the C library's iteration over loaded objects), and is reset in a fork's child.

use core::cell::UnsafeCell;
use core::ops::{Deref, DerefMut};
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use crate::sys;

const FREE: u32 = 0;
const HELD: u32 = 1;
const CONTENDED: u32 = 2;

/// How many waits, of a tenth of a second each, until a lock is taken from a fork.
const PATIENCE: u32 = 10;
/// Whether a lock was taken from the fork that is under way.
static TAKEN_FROM_FORK: AtomicBool = AtomicBool::new(false);

/// In a fork's child: whether another thread may have been in the middle of a change at the fork.
pub(crate) fn was_taken_from_fork() -> bool {
    TAKEN_FROM_FORK.swap(false, Ordering::Relaxed)
}

/// State that threads share, accessible only while the lock is held.
pub(crate) struct Lock<T> {
    word: AtomicU32,
    /// Held from before a fork to after it, by a thread that changes nothing.
    by_fork: AtomicBool,
    state: UnsafeCell<T>,
}

// SAFETY: `state` is only accessed through `Held`, of which there is one at a time. What the states point to belongs
// to no particular thread.
unsafe impl<T> Sync for Lock<T> {}

/// The moments of a fork at which each lock must be handled, so that no change is half done in the child.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fork {
    /// Before it, in the forking thread, which holds the lock from then on.
    Before,
    /// After it, in the parent.
    InParent,
    /// After it, in the child, whose only thread holds nothing.
    InChild,
}

impl<T> Lock<T> {
    pub(crate) const fn new(state: T) -> Self {
        let (word, by_fork) = (AtomicU32::new(FREE), AtomicBool::new(false));
        Self { word, by_fork, state: UnsafeCell::new(state) }
    }

    /// Waits for the lock, which is released when the result is dropped.
    pub(crate) fn hold(&self) -> Held<'_, T> {
        self.acquire();
        Held(self)
    }

    /// Takes, releases or resets the lock, depending on the moment.
    pub(crate) fn fork(&self, moment: Fork) {
        match moment {
            Fork::Before => {
                self.acquire();
                self.by_fork.store(true, Ordering::Release);
            }
            Fork::InParent => {
                TAKEN_FROM_FORK.store(false, Ordering::Relaxed);
                if self.by_fork.swap(false, Ordering::AcqRel) {
                    self.release();
                }
            }
            Fork::InChild => {
                self.by_fork.store(false, Ordering::Relaxed);
                self.word.store(FREE, Ordering::Relaxed);
            }
        }
    }

    fn acquire(&self) {
        if self.word.compare_exchange(FREE, HELD, Ordering::Acquire, Ordering::Relaxed).is_ok() {
            return;
        }
        let mut waits = 0;
        while self.word.swap(CONTENDED, Ordering::Acquire) != FREE {
            if waits >= PATIENCE && self.take_from_fork() {
                return;
            }
            sys::futex_wait(&self.word, CONTENDED);
            waits += 1;
        }
    }

    /// Takes the lock from a fork that holds it; returns false if no fork does. The fork may be waiting for a lock of
    /// the C library whose holder waits here, in a signal handler. The child is not recorded then.
    #[cold]
    fn take_from_fork(&self) -> bool {
        if !self.by_fork.load(Ordering::Relaxed) {
            return false;
        }
        TAKEN_FROM_FORK.store(true, Ordering::SeqCst);
        self.by_fork.swap(false, Ordering::AcqRel)
    }

    fn release(&self) {
        if self.word.swap(FREE, Ordering::Release) == CONTENDED {
            sys::futex_wake(&self.word);
        }
    }
}

/// A held lock, released when this is dropped.
pub(crate) struct Held<'a, T>(&'a Lock<T>);

impl<T> Deref for Held<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: the lock is held.
        unsafe { &*self.0.state.get() }
    }
}

impl<T> DerefMut for Held<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the lock is held, by this alone.
        unsafe { &mut *self.0.state.get() }
    }
}

impl<T> Drop for Held<'_, T> {
    fn drop(&mut self) {
        self.0.release();
    }
}
