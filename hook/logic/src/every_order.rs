//! Runs threads in every order of their steps: for tests of what threads share.
//!
//! A thread says before each access to what is shared that a [`step`] follows. One runs at a time, up to its next step; the order
//! is chosen, and all orders are tried one after the other (depth first), with at most so many switches away from a thread that
//! could go on. Accesses are in the order of the program: on x86, only a plain store may be seen later than that by others.

use std::cell::RefCell;
use std::sync::{Arc, Condvar, Mutex};
use std::vec::Vec;

/// What a thread may do next.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Status {
    Ready,
    /// Until another one wakes it, or, if `timed`, until its time is over, which may be at once.
    Waiting {
        since: usize,
        timed: bool,
    },
    Ended,
}

struct State {
    threads: Vec<Status>,
    turn: usize,
    /// For each choice so far, which was taken, of how many.
    choices: Vec<(usize, usize)>,
    /// How many choices there were in this run, and how many waits.
    made: usize,
    waits: usize,
    /// How many more switches there may be in this run.
    switches: usize,
    is_failed: bool,
}

struct Turns {
    state: Mutex<State>,
    /// For each thread: that its turn has come, or that another one has failed.
    changed: Vec<Condvar>,
}

std::thread_local! {
    static HERE: RefCell<Option<(Arc<Turns>, usize)>> = const { RefCell::new(None) };
}

/// Runs `threads` with what `make` makes, in every order of their steps, with at most so many switches in a run; and `check` after
/// each run. Gives the number of runs.
///
/// # Panics
/// If one of them does, or if all wait.
pub(crate) fn every_order<S: Sync>(
    most_switches: usize,
    make: impl Fn() -> S,
    threads: &[&(dyn Fn(&S) + Sync)],
    check: impl Fn(&S),
) -> usize {
    let (mut choices, mut runs) = (Vec::new(), 0);
    loop {
        let shared = make();
        let turns = Arc::new(Turns {
            state: Mutex::new(State {
                threads: std::vec![Status::Ready; threads.len()],
                turn: usize::MAX,
                choices,
                made: 0,
                waits: 0,
                switches: most_switches,
                is_failed: false,
            }),
            changed: threads.iter().map(|_| Condvar::new()).collect(),
        });
        std::thread::scope(|scope| {
            for (number, thread) in threads.iter().enumerate() {
                let (turns, shared) = (Arc::clone(&turns), &shared);
                scope.spawn(move || {
                    let ending = Ending(Arc::clone(&turns), number);
                    HERE.set(Some((turns, number)));
                    ending.0.await_turn(number);
                    thread(shared);
                });
            }
            turns.pass(usize::MAX, |_| ());
        });
        check(&shared);
        runs += 1;
        let state = Arc::try_unwrap(turns).ok().expect("all threads have ended").state;
        choices = state.into_inner().expect("none has failed").choices;
        while choices.pop_if(|(taken, count)| *taken + 1 == *count).is_some() {}
        match choices.last_mut() {
            Some((taken, _)) => *taken += 1,
            None => return runs,
        }
    }
}

/// The next access is to what is shared.
pub(crate) fn step() {
    here(|_| ());
}

/// Waits to be woken; if `timed`, for a limited time.
pub(crate) fn wait(timed: bool) {
    here(|state| {
        state.waits += 1;
        state.threads[state.turn] = Status::Waiting { since: state.waits, timed };
    });
}

/// Wakes the thread that has waited longest.
pub(crate) fn wake() {
    HERE.with_borrow(|here| {
        let Some((turns, _)) = here else { return };
        let mut state = turns.state.lock().expect("none has failed");
        let since = |status: &Status| match status {
            Status::Waiting { since, .. } => *since,
            _ => usize::MAX,
        };
        let longest = state.threads.iter_mut().min_by_key(|status| since(status));
        if let Some(status @ Status::Waiting { .. }) = longest {
            *status = Status::Ready;
        }
    });
}

/// Wakes all that wait.
pub(crate) fn wake_all() {
    HERE.with_borrow(|here| {
        let Some((turns, _)) = here else { return };
        let mut state = turns.state.lock().expect("none has failed");
        for status in &mut state.threads {
            if matches!(status, Status::Waiting { .. }) {
                *status = Status::Ready;
            }
        }
    });
}

/// Changes what this thread may do, and lets others have their turns before this one goes on. (What is in no such run goes on.)
fn here(change: impl FnOnce(&mut State)) {
    HERE.with_borrow(|here| {
        if let Some((turns, number)) = here {
            turns.pass(*number, change);
            turns.await_turn(*number);
        }
    });
}

impl Turns {
    /// Chooses whose turn is next.
    fn pass(&self, number: usize, change: impl FnOnce(&mut State)) {
        let mut state = self.state.lock().expect("none has failed");
        change(&mut state);
        let is_ready = |it: &usize| state.threads.get(*it) == Some(&Status::Ready);
        let others = (0..state.threads.len()).filter(|it| *it != number);
        let mut ready: Vec<usize> = others.filter(is_ready).collect();
        let may_go_on = is_ready(&number);
        if may_go_on {
            ready.insert(0, number);
        }
        // The first choice costs nothing: it goes on, or another one begins where it can't.
        let free = if may_go_on { 1 } else { ready.len() };
        let is_timed = |status: &Status| matches!(status, Status::Waiting { timed: true, .. });
        let threads = state.threads.iter().enumerate();
        ready.extend(threads.filter(|(_, status)| is_timed(status)).map(|(number, _)| number));
        let free = if free == 0 { ready.len() } else { free };
        let count = if state.switches == 0 { free } else { ready.len() };
        if count == 0 {
            let all_ended = state.threads.iter().all(|status| *status == Status::Ended);
            state.is_failed |= !all_ended;
            self.notify_all();
            return;
        }
        let taken = if count == 1 { 0 } else { state.choose(count) };
        if taken >= free {
            state.switches = state.switches.saturating_sub(1);
        }
        let next = ready[taken];
        state.threads[next] = Status::Ready;
        state.turn = next;
        self.changed[next].notify_one();
    }

    fn notify_all(&self) {
        self.changed.iter().for_each(Condvar::notify_one);
    }

    fn await_turn(&self, number: usize) {
        let state = self.state.lock().expect("none has failed");
        let is_other = |state: &mut State| state.turn != number && !state.is_failed;
        let state = self.changed[number].wait_while(state, is_other).expect("none has failed");
        if state.is_failed {
            let choices = state.choices.clone();
            drop(state);
            panic!("all wait, or another thread has failed: {choices:?}");
        }
    }
}

impl State {
    /// As in the run before up to the last choice, and from there on the first of all.
    fn choose(&mut self, count: usize) -> usize {
        if self.made == self.choices.len() {
            self.choices.push((0, count));
        }
        let (taken, count_before) = self.choices[self.made];
        assert_eq!(
            count_before, count,
            "what threads do depends on more than the order of their steps"
        );
        self.made += 1;
        taken
    }
}

/// The end of a thread.
struct Ending(Arc<Turns>, usize);

impl Drop for Ending {
    fn drop(&mut self) {
        // What is the thread's own may live on for a while after it was waited for.
        HERE.set(None);
        let is_failed = std::thread::panicking();
        // Another thread's failure ends this one as well.
        if let Ok(mut state) = self.0.state.lock() {
            state.is_failed |= is_failed;
            state.threads[self.1] = Status::Ended;
        }
        if is_failed {
            return self.0.notify_all();
        }
        self.0.pass(self.1, |_| ());
    }
}

mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::{every_order, step};

    /// Of two threads that read, add and write, one may be lost; and all orders of two steps each are six.
    #[test]
    fn all_orders_are_tried() {
        let seen = std::sync::Mutex::new([0; 3]);
        let add = |sum: &AtomicU32| {
            step();
            let old = sum.load(Ordering::SeqCst);
            step();
            sum.store(old + 1, Ordering::SeqCst);
        };
        let runs = every_order(
            usize::MAX,
            || AtomicU32::new(0),
            &[&add, &add],
            |sum| {
                seen.lock().expect("no panic")[sum.load(Ordering::SeqCst) as usize] += 1;
            },
        );
        let [none, lost, both] = *seen.lock().expect("no panic");
        assert_eq!((none, runs), (0, lost + both));
        assert!(lost >= 2 && both >= 2, "{lost} lost, {both} not");
    }
}
