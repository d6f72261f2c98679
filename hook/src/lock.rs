//! A lock for the slow paths. It is taken with signals blocked, is never held while application
//! code or the C library runs (but for the loader's own walk), and is reset in a fork's child.

use core::cell::UnsafeCell;
use core::ops::{Deref, DerefMut};
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use crate::sys;

const FREE: u32 = 0;
const HELD: u32 = 1;
const CONTENDED: u32 = 2;

/// Waits, of a tenth of a second, after which a lock is taken from a fork.
const PATIENCE: u32 = 10;
/// Whether a lock was taken from the fork that is under way.
static TAKEN_FROM_FORK: AtomicBool = AtomicBool::new(false);

/// In a fork's child: whether somebody may have been in the middle of a change.
pub(crate) fn was_taken_from_fork() -> bool {
    TAKEN_FROM_FORK.swap(false, Ordering::Relaxed)
}

/// State that threads share. Only who holds the lock gets at it.
pub(crate) struct Lock<T> {
    word: AtomicU32,
    /// Held from before a fork to after it: by who changes nothing.
    by_fork: AtomicBool,
    state: UnsafeCell<T>,
}

// SAFETY: `state` is touched through `Held` only, of which there is one at a time. What states point to belongs to no
// thread.
unsafe impl<T> Sync for Lock<T> {}

/// A moment in a fork at which each lock must be seen to, so that nobody is in the middle of a change in the child.
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

    /// Waits for the lock; it is released when the result is dropped.
    pub(crate) fn hold(&self) -> Held<'_, T> {
        self.acquire();
        Held(self)
    }

    /// Does what this moment of a fork asks for.
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

    /// A fork that holds this waits for a lock of the C library's, perhaps, whose holder waits here, in a signal handler: who
    /// waits has it from now on. The child is not recorded then.
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

/// The lock is held for as long as this lives.
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
