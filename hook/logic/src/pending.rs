//! What a thread has to do at its next call.
//!
//! While `dlopen` or `dlclose` runs, what is loaded changes. Nothing says when it returns (it looks at the object that it
//! returns to, so its return address stays); but where the thread's later calls are made does.

/// How often new objects are looked for while a load still runs.
const TRIES: u32 = 64;

/// Work to be done at a thread's next call. While there is any, all calls take the slow path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pending {
    /// The stack address of a call of `dlopen` or `dlclose` that may not have returned yet; 0 if there is none.
    pub load_sp: usize,
    /// The stack address of the outermost such call under way.
    outer_sp: usize,
    /// Whether what it loads is in the global scope.
    pub global: bool,
    /// The word on the stack at `load_sp` as long as the call runs; 0: the address of a frame's pad.
    pub return_address: usize,
    /// Whether the call has not been entered yet.
    entering: bool,
    /// How often new objects were looked for before the call has returned.
    tries: u32,
    /// Whether the thread may have forked without the C library's knowledge.
    pub fork: bool,
}

/// That what is loaded is to be looked at now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Look {
    /// Whether the load is over for sure. (Otherwise this may be a signal handler that has interrupted it.)
    pub is_over: bool,
    /// What is to be done afterwards.
    pub then: Pending,
}

impl Pending {
    /// Nothing.
    pub const NONE: Self = Self {
        load_sp: 0,
        outer_sp: 0,
        return_address: 0,
        global: false,
        entering: false,
        tries: 0,
        fork: false,
    };

    /// The same, and a call at `sp`, with this return address, that may change what is loaded. If it gets a frame, its own
    /// entry is the thread's next call, and its return address is not known yet.
    #[must_use]
    pub fn with_load(
        self,
        sp: usize,
        return_address: usize,
        global: bool,
        gets_frame: bool,
    ) -> Self {
        Self {
            load_sp: sp,
            return_address: if gets_frame { 0 } else { return_address },
            outer_sp: self.outer_sp.max(sp),
            global,
            entering: gets_frame,
            ..self
        }
    }

    /// The same, once the call at `sp` has got its frame, or runs without one: if it is that load, it runs from now on. `None` if
    /// nothing changes.
    #[must_use]
    pub fn entered(self, sp: usize) -> Option<Self> {
        (self.entering && self.load_sp == sp).then_some(Self { entering: false, ..self })
    }

    /// The same, and whether the thread may have forked.
    #[must_use]
    pub fn with_fork(self, fork: bool) -> Self {
        Self { fork, ..self }
    }

    /// Whether a call at `sp` may show that a load is over. `is_own`: both are on the thread's own stack. (A handler may have a
    /// stack of its own, at higher addresses than the one that it has interrupted.)
    #[must_use]
    pub fn may_be_over(&self, sp: usize, is_own: bool) -> bool {
        // Otherwise, this is that call's own entry, or a signal handler's, unless a handler has jumped out of that call.
        self.load_sp != 0 && !(self.entering && (sp <= self.load_sp || !is_own))
    }

    /// Decides at such a call whether to look at what is loaded. `runs`: the load still has its place on the stack. A call from
    /// above, or another return address in its place, shows that the load is over. Until then, new objects may be ready all the
    /// same, with their constructors running.
    #[must_use]
    pub fn look(self, sp: usize, is_own: bool, runs: bool) -> Option<Look> {
        let is_above = sp >= self.load_sp;
        let has_returned = is_above || !runs;
        if !has_returned && self.tries >= TRIES {
            return None;
        }
        let then = if !has_returned {
            Self { tries: self.tries + 1, ..self }
        } else if self.outer_sp > sp && self.outer_sp != self.load_sp {
            Self { load_sp: self.outer_sp, ..self }
        } else {
            Self::NONE
        };
        Some(Look { is_over: !runs || is_above && is_own, then })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOAD: Pending = Pending::NONE.with_load_at(0x2000);

    impl Pending {
        /// A load that runs in a frame.
        const fn with_load_at(self, sp: usize) -> Self {
            Self { load_sp: sp, outer_sp: sp, ..self }
        }
    }

    #[test]
    fn a_load_is_not_over_before_it_was_entered() {
        let announced = Pending::NONE.with_load(0x2000, 0x77, true, true);
        assert_eq!((announced.return_address, announced.global), (0, true));
        // Its own entry, and a handler that comes before it, perhaps on a stack of its own.
        assert!(!announced.may_be_over(0x2000, true) && !announced.may_be_over(0x1f00, true));
        assert!(!announced.may_be_over(0x9000, false));
        // A handler has jumped out of it.
        assert!(announced.may_be_over(0x2100, true));
        let entered = announced.entered(0x2000).expect("a change");
        assert!(entered.may_be_over(0x1f00, true));
        assert_eq!([announced.entered(0x1800), entered.entered(0x2000)], [None; 2]);
        assert!(!Pending::NONE.may_be_over(0x1f00, true));
    }

    #[test]
    fn one_without_a_frame_runs_at_once() {
        let load = Pending::NONE.with_load(0x2000, 0x77, false, false);
        assert_eq!((load.return_address, load.global), (0x77, false));
        assert!(load.may_be_over(0x1f00, true));
    }

    #[test]
    fn a_call_from_above_shows_that_it_is_over() {
        let over = Look { is_over: true, then: Pending::NONE };
        assert_eq!(LOAD.look(0x2000, true, true), Some(over));
        assert_eq!(LOAD.look(0x1f00, true, false), Some(over));
        // A handler's stack may be above.
        assert_eq!(LOAD.look(0x9000, false, true), Some(Look { is_over: false, ..over }));
    }

    #[test]
    fn constructors_are_looked_after_some_times() {
        let mut load = LOAD;
        for tries in 1..=TRIES {
            let look = load.look(0x1f00, true, true).expect("a look");
            assert_eq!((look.is_over, look.then), (false, Pending { tries, ..LOAD }));
            load = look.then;
        }
        assert_eq!(load.look(0x1f00, true, true), None);
        assert!(load.look(0x2000, true, true).is_some());
    }

    #[test]
    fn after_an_inner_load_the_outer_one_is_pending() {
        let inner = LOAD.with_load(0x1800, 0, false, true).entered(0x1800).expect("a change");
        let look = inner.look(0x1900, true, true).expect("a look");
        assert!(look.is_over && look.then.load_sp == 0x2000 && look.then != Pending::NONE);
        assert_eq!(look.then.with_fork(true).with_fork(false), look.then);
        // Both are over.
        assert_eq!(inner.look(0x2100, true, true).map(|look| look.then), Some(Pending::NONE));
    }
}
