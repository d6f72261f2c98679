//! How long a thread has run, between the times that it asks the kernel.

/// A thread asks again when it is so many times as old.
const AGE_FACTOR: u64 = 2;

/// What the kernel last answered a thread.
#[derive(Clone, Copy)]
pub struct Ran {
    /// The thread's age at that time, and for how much of it it had run, in ticks. 0: it has not asked yet.
    life: u64,
    ran: u64,
}

impl Ran {
    /// It has not asked yet.
    pub const UNKNOWN: Self = Self { life: 0, ran: 0 };

    /// The answer to a thread of this age, in ticks, that has run for so many of them.
    #[must_use]
    pub fn answered(life: u64, ran: u64) -> Self {
        Self { life, ran: ran.min(life) }
    }

    /// Whether a thread of this age asks again.
    #[must_use]
    pub fn is_old(self, life: u64) -> bool {
        life >= self.life.saturating_mul(AGE_FACTOR)
    }

    /// Returns for how many ticks of this age it has run, if it runs as large a part of the time as up to when it asked; before that,
    /// it is taken to run always.
    #[must_use]
    pub fn of(self, life: u64) -> u64 {
        if self.life == 0 {
            return life;
        }
        // (A part of `since`, so it fits.)
        let since = life.saturating_sub(self.life);
        self.ran + (u128::from(since) * u128::from(self.ran) / u128::from(self.life)) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_has_not_asked_always_runs() {
        assert!(Ran::UNKNOWN.is_old(0) && Ran::UNKNOWN.is_old(1));
        assert_eq!(Ran::UNKNOWN.of(1_000), 1_000);
    }

    #[test]
    fn it_runs_on_as_much_as_before() {
        let ran = Ran::answered(1_000, 250);
        assert_eq!([500, 1_000, 3_000].map(|life| ran.of(life)), [250, 250, 750]);
        assert_eq!(Ran::answered(1_000, 0).of(9_000), 0);
    }

    #[test]
    fn it_asks_when_it_is_twice_as_old() {
        let ran = Ran::answered(1_000, 250);
        assert_eq!([1_000, 1_999, 2_000].map(|life| ran.is_old(life)), [false, false, true]);
    }

    #[test]
    fn nothing_runs_longer_than_it_lives() {
        assert_eq!(Ran::answered(1_000, 1_100).of(2_000), 2_000);
        let old = Ran::answered(u64::MAX / 2, u64::MAX / 2);
        assert_eq!(old.of(u64::MAX), u64::MAX);
        assert!(!Ran::answered(u64::MAX, 1).is_old(u64::MAX - 1));
    }
}
