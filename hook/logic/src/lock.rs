//! The protocol of the hook's lock: what is done with its words, and when threads wait.
//!
//! The words and the kernel's part are the caller's, so that a test can try every order of the steps.

/// Nobody holds the lock.
pub const FREE: u32 = 0;
/// A thread holds it.
pub const HELD: u32 = 1;
/// A thread holds it, and others may be waiting.
pub const CONTENDED: u32 = 2;

/// No fork holds the lock.
pub const NO_FORK: u32 = 0;
/// It was taken from a fork that is under way.
pub const TAKEN: u32 = 1;
/// From here on: the forking thread's number. Its fork holds the lock, from before it to after it, and changes nothing.
pub const FIRST_FORK: u32 = 2;

/// The words of a lock, and the kernel's part.
pub trait Words {
    /// How many waits until a lock is taken from a fork.
    const PATIENCE: u32;

    /// Replaces the word if it is `old`; returns whether it was. What the last holder did is seen after that.
    fn exchange(&self, old: u32, new: u32) -> bool;
    /// Replaces the word; returns the old one. Orders as a lock and an unlock do.
    fn swap(&self, new: u32) -> u32;
    /// Returns what a fork has to do with the lock.
    fn mark(&self) -> u32;
    /// Replaces that if it is `old`; returns whether it was.
    fn exchange_mark(&self, old: u32, new: u32) -> bool;
    /// Replaces that; returns the old value.
    fn swap_mark(&self, new: u32) -> u32;
    /// Waits for a limited time, unless the word is no longer `value`.
    fn wait(&self, value: u32);
    /// Wakes one thread that waits.
    fn wake(&self);
}

/// Waits for the lock.
#[inline]
pub fn acquire(words: &impl Words) {
    if !words.exchange(FREE, HELD) {
        wait_for(words);
    }
}

/// Takes the lock if it is free; returns whether it was.
#[must_use]
pub fn try_acquire(words: &impl Words) -> bool {
    words.exchange(FREE, HELD)
}

fn wait_for<W: Words>(words: &W) {
    let mut waits = 0;
    while words.swap(CONTENDED) != FREE {
        if waits >= W::PATIENCE && take_from_fork(words) {
            return;
        }
        words.wait(CONTENDED);
        waits += 1;
    }
}

/// Takes the lock from a fork that holds it; returns false if none does. The fork may be waiting for a lock of the C
/// library whose holder waits here, in a signal handler.
#[cold]
fn take_from_fork(words: &impl Words) -> bool {
    let mark = words.mark();
    mark >= FIRST_FORK && words.exchange_mark(mark, TAKEN)
}

/// Gives the lock back.
#[inline]
pub fn release(words: &impl Words) {
    if words.swap(FREE) == CONTENDED {
        words.wake();
    }
}

/// Takes the lock for the fork of a thread with this number, [`FIRST_FORK`] or more.
pub fn before_fork(words: &impl Words, thread: u32) {
    acquire(words);
    words.swap_mark(thread);
}

/// Releases the lock after that fork, in the parent. If another thread, perhaps another fork, has taken the lock from the fork
/// meanwhile, that thread releases it.
pub fn after_fork_in_parent(words: &impl Words, thread: u32) {
    if words.exchange_mark(thread, NO_FORK) {
        release(words);
    } else {
        words.exchange_mark(TAKEN, NO_FORK);
    }
}

/// Frees the lock after a fork, in the child. Returns whether another thread may have been in the middle of a change:
/// the lock had been taken from the fork, or nobody announced the fork and the lock was held.
pub fn after_fork_in_child(words: &impl Words, thread: u32) -> bool {
    let word = words.swap(FREE);
    match words.swap_mark(NO_FORK) {
        NO_FORK => word != FREE,
        mark => mark != thread,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;
    use crate::every_order::{every_order, step, wait, wake};

    /// A lock, of which each step is one of the model's, and how many threads are inside.
    struct Model<const TIMED: bool> {
        word: AtomicU32,
        mark: AtomicU32,
        inside: AtomicU32,
        entered: AtomicU32,
    }

    const ORDER: Ordering = Ordering::SeqCst;
    /// Orders that there are at least.
    const LEAST: usize = if cfg!(miri) { 5 } else { 50 };

    /// Switches in a run: few for the interpreter, which takes long for each.
    const fn switches(most: usize) -> usize {
        if cfg!(miri) { 1 } else { most }
    }

    impl<const TIMED: bool> Model<TIMED> {
        fn new() -> Self {
            let zero = || AtomicU32::new(0);
            Self { word: zero(), mark: zero(), inside: zero(), entered: zero() }
        }

        /// What a thread does with the lock.
        fn use_once(&self) {
            acquire(self);
            self.entered.fetch_add(1, ORDER);
            self.change();
        }

        /// The same if it is free.
        fn try_once(&self) {
            if try_acquire(self) {
                self.change();
            }
        }

        fn change(&self) {
            assert_eq!(self.inside.fetch_add(1, ORDER), 0, "two are inside");
            step();
            self.inside.fetch_sub(1, ORDER);
            release(self);
        }

        fn is_idle(&self) {
            assert_eq!((self.word.load(ORDER), self.mark.load(ORDER)), (FREE, NO_FORK));
        }
    }

    impl<const TIMED: bool> Words for Model<TIMED> {
        const PATIENCE: u32 = 1;

        fn exchange(&self, old: u32, new: u32) -> bool {
            step();
            self.word.compare_exchange(old, new, ORDER, ORDER).is_ok()
        }

        fn swap(&self, new: u32) -> u32 {
            step();
            self.word.swap(new, ORDER)
        }

        fn mark(&self) -> u32 {
            step();
            self.mark.load(ORDER)
        }

        fn exchange_mark(&self, old: u32, new: u32) -> bool {
            step();
            self.mark.compare_exchange(old, new, ORDER, ORDER).is_ok()
        }

        fn swap_mark(&self, new: u32) -> u32 {
            step();
            self.mark.swap(new, ORDER)
        }

        fn wait(&self, value: u32) {
            step();
            if self.word.load(ORDER) == value {
                wait(TIMED);
            }
        }

        fn wake(&self) {
            step();
            wake();
        }
    }

    /// Waits without a limit: a wake-up that is lost would leave a thread waiting for ever.
    #[test]
    fn one_holds_it_and_none_waits_for_ever() {
        type Untimed = Model<false>;
        let once = |model: &Untimed| model.use_once();
        let twice = |model: &Untimed| (0..2).for_each(|_| model.use_once());
        let two = every_order(switches(9), Untimed::new, &[&once, &once], Untimed::is_idle);
        let again = every_order(switches(3), Untimed::new, &[&twice, &twice], Untimed::is_idle);
        let all = [&once as &(dyn Fn(&Untimed) + Sync); 3];
        let three = every_order(switches(2), Untimed::new, &all, Untimed::is_idle);
        assert!(two > LEAST && again > LEAST && three > LEAST, "{two}, {again}, {three}");
        let tries = |model: &Untimed| (0..2).for_each(|_| model.try_once());
        let trying = every_order(switches(4), Untimed::new, &[&twice, &tries], Untimed::is_idle);
        assert!(trying > LEAST, "{trying}");
    }

    /// A fork that holds the lock for long loses it to a waiting thread. Its child knows that; the child of the next fork is not
    /// affected.
    #[test]
    fn a_fork_may_lose_it_and_its_child_knows() {
        type Timed = Model<true>;
        let forks = |model: &Timed| {
            for _ in 0..2 {
                before_fork(model, FIRST_FORK);
                let entered = model.entered.load(ORDER);
                step();
                // What the child finds.
                let is_torn = model.mark.load(ORDER) == TAKEN;
                let is_inside = model.inside.load(ORDER) > 0;
                assert!(is_torn || !is_inside, "a child does not know of a change");
                let has_entered = model.entered.load(ORDER) != entered;
                assert!(is_torn || !has_entered, "somebody was there unnoticed");
                after_fork_in_parent(model, FIRST_FORK);
            }
        };
        let uses = |model: &Timed| model.use_once();
        let two = every_order(switches(4), Timed::new, &[&forks, &uses], Timed::is_idle);
        let all = [&forks as &(dyn Fn(&Timed) + Sync), &uses, &uses];
        let three = every_order(switches(2), Timed::new, &all, Timed::is_idle);
        assert!(two > LEAST && three > LEAST, "{two}, {three}");
    }

    #[test]
    fn of_two_forks_at_once_the_first_gives_back_nothing_of_the_second() {
        let model = Model::<true>::new();
        before_fork(&model, FIRST_FORK);
        // The second has waited for long.
        assert!(take_from_fork(&model));
        model.mark.store(FIRST_FORK + 1, ORDER);
        after_fork_in_parent(&model, FIRST_FORK);
        assert_ne!(model.word.load(ORDER), FREE);
        after_fork_in_parent(&model, FIRST_FORK + 1);
        model.is_idle();
    }

    #[test]
    fn a_child_has_it_free() {
        let model = Model::<true>::new();
        let announced = [(FIRST_FORK, false), (FIRST_FORK + 1, true), (TAKEN, true)];
        let announced = announced.map(|(mark, is_torn)| (CONTENDED, mark, is_torn));
        let not_announced = [(FREE, NO_FORK, false), (HELD, NO_FORK, true)];
        for (word, mark, is_torn) in announced.into_iter().chain(not_announced) {
            model.word.store(word, ORDER);
            model.mark.store(mark, ORDER);
            assert_eq!(after_fork_in_child(&model, FIRST_FORK), is_torn);
            model.is_idle();
        }
    }
}
