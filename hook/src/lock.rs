//! A lock for the slow paths. It is taken with signals blocked, is never held while application code or the C library
//! runs (except for the C library's iteration over loaded objects), and is reset in a fork's child. Its protocol is in
//! `chase_logic::lock`, where it is tested in every order of its steps.

use core::cell::UnsafeCell;
use core::ops::{Deref, DerefMut};
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use chase_logic::lock::{self, FIRST_FORK, FREE, NO_FORK};

use crate::arch::own_thread_pointer;
use crate::sys;

/// In a fork's child: whether a lock had been taken from the fork.
static TAKEN_FROM_FORK: AtomicBool = AtomicBool::new(false);

/// In a fork's child: whether another thread may have been in the middle of a change at the fork.
pub(crate) fn was_taken_from_fork() -> bool {
    TAKEN_FROM_FORK.swap(false, Ordering::Relaxed)
}

/// State that threads share, accessible only while the lock is held.
pub(crate) struct Lock<T> {
    words: Words,
    state: UnsafeCell<T>,
}

struct Words {
    word: AtomicU32,
    /// What a fork has to do with the lock.
    mark: AtomicU32,
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
        let words = Words { word: AtomicU32::new(FREE), mark: AtomicU32::new(NO_FORK) };
        Self { words, state: UnsafeCell::new(state) }
    }

    /// Waits for the lock, which is released when the result is dropped.
    pub(crate) fn hold(&self) -> Held<'_, T> {
        lock::acquire(&self.words);
        Held(self)
    }

    /// The same if nobody else holds it.
    pub(crate) fn try_hold(&self) -> Option<Held<'_, T>> {
        lock::try_acquire(&self.words).then(|| Held(self))
    }

    /// Takes, releases or resets the lock, depending on the moment.
    pub(crate) fn fork(&self, moment: Fork) {
        match moment {
            Fork::Before => lock::before_fork(&self.words, own_number()),
            Fork::InParent => lock::after_fork_in_parent(&self.words, own_number()),
            Fork::InChild => {
                if lock::after_fork_in_child(&self.words, own_number()) {
                    TAKEN_FROM_FORK.store(true, Ordering::Relaxed);
                }
            }
        }
    }
}

/// Returns a number of the calling thread that its fork's child has as well.
pub(crate) fn own_number() -> u32 {
    const ALIGNMENT: u32 = 6;
    ((own_thread_pointer() >> ALIGNMENT) as u32).max(FIRST_FORK)
}

impl lock::Words for Words {
    /// Each wait is of a tenth of a second.
    const PATIENCE: u32 = 10;

    #[inline]
    fn exchange(&self, old: u32, new: u32) -> bool {
        self.word.compare_exchange(old, new, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    #[inline]
    fn swap(&self, new: u32) -> u32 {
        self.word.swap(new, Ordering::AcqRel)
    }

    fn mark(&self) -> u32 {
        self.mark.load(Ordering::Relaxed)
    }

    fn exchange_mark(&self, old: u32, new: u32) -> bool {
        self.mark.compare_exchange(old, new, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    fn swap_mark(&self, new: u32) -> u32 {
        self.mark.swap(new, Ordering::AcqRel)
    }

    fn wait(&self, value: u32) {
        sys::futex_wait(&self.word, value);
    }

    fn wake(&self) {
        sys::futex_wake(&self.word);
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
        lock::release(&self.0.words);
    }
}
