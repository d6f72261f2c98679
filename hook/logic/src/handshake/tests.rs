//! Processes that look for a companion, and companions of all kinds, in every order of their steps. A system call is a step.

use std::any::Any;
use std::boxed::Box;
use std::cell::Cell;
use std::format;
use std::mem::ManuallyDrop;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::string::String;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::vec::Vec;

use super::*;
use crate::every_order::{every_order, step, wait, wake_all};
use crate::session::STARTING;

/// The line of a companion that is long dead, and its session.
const STALE: &str = "chase companion 1\nsession 7\nidle 00000000000000000042\n";
const PATIENT: Patience = Patience { ms: 10, is_required: false };
const REQUIRED: Patience = Patience { ms: 30_000, is_required: true };
const NOW_S: u64 = 1_000_000;
const FIRST_PROCESS: i32 = 100;
const FIRST_SESSION: u64 = 1_000;
const FOR_EVER: usize = usize::MAX;
/// Switches away from a process that could go on, in a run: none for the interpreter, which takes long for each.
const SWITCHES: usize = if cfg!(miri) { 0 } else { 1 };
/// Orders that there are at least.
const LEAST: usize = if cfg!(miri) { 1 } else { 10 };

/// What a companion does once it was started.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Deed {
    /// Announces its session, answers, and stays.
    Listens,
    /// The same, and stops listening, as after its last process.
    ListensAndEnds,
    /// Answers that it takes samples alone.
    TakesSamples,
    /// Says why it can't record, and ends.
    Refuses,
    /// Has the lock, and says nothing.
    Hangs,
    /// Writes one byte of an answer after the other.
    Dribbles,
    /// Answers that it is ready, and isn't.
    Lies,
    /// Writes much, and no line.
    Babbles,
}

/// What all share.
struct World {
    state: Mutex<State>,
    deed: Deed,
    /// Whether there is a companion to start.
    is_installed: bool,
    /// Whether the file is this user's.
    is_own: bool,
    /// Whether another thread of each process forks while the file is open; the child keeps it.
    forks: bool,
}

struct State {
    text: Vec<u8>,
    /// How many have each open file, by its number.
    open: Vec<usize>,
    /// Which of them hold the lock.
    held: Vec<(usize, Hold)>,
    companions: Vec<Companion>,
    /// How many companions have begun.
    begun: usize,
    /// Processes that still look.
    seekers: usize,
    /// Counts steps.
    now: usize,
    found: Vec<Option<u64>>,
    reasons: Vec<String>,
}

struct Companion {
    file: usize,
    answer: Vec<u8>,
    heard: usize,
    is_alive: bool,
    is_killed: bool,
    /// When it began to listen, and ended.
    listened: Option<(usize, usize)>,
}

/// Ends a process at a step.
struct Killed;

/// A process, which lives for so many steps.
struct Process<'a> {
    world: &'a World,
    companion: Option<usize>,
    steps: Cell<usize>,
    waited_ms: Cell<u64>,
    started: Cell<Option<usize>>,
}

struct Open<'a> {
    process: &'a Process<'a>,
    number: usize,
}

impl World {
    fn new(text: &str, deed: Deed, seekers: usize) -> Self {
        let state = State {
            text: text.as_bytes().to_vec(),
            open: Vec::new(),
            held: Vec::new(),
            companions: Vec::new(),
            begun: 0,
            seekers,
            now: 0,
            found: Vec::new(),
            reasons: Vec::new(),
        };
        let state = Mutex::new(state);
        Self { state, deed, is_installed: true, is_own: true, forks: false }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A process that looks for a companion, and is killed after so many steps.
    fn seek(&self, patience: Patience, steps: usize) {
        let process = Process::new(self, None, steps);
        let begin = self.state().now;
        let mut reason = Reason::new();
        let found = until_killed(|| find(&&process, patience, &mut reason));
        let mut state = self.state();
        if let Some(found) = found {
            state.accepted(begin, found);
            assert_eq!(
                found.is_none(),
                !reason.as_bytes().is_empty(),
                "with a reason or a session"
            );
            state.found.push(found);
            state.reasons.push(String::from_utf8_lossy(reason.as_bytes()).into_owned());
        }
        let most_ms = if patience.is_required { 2 * patience.ms } else { patience.ms };
        let waited_ms = process.waited_ms.get();
        assert!(waited_ms <= most_ms, "a process waits {waited_ms} ms");
        state.seekers -= 1;
        drop(state);
        wake_all();
    }

    /// Is each of the companions that are started, which are killed after so many steps, as long as some process looks for one.
    fn be_companion(&self, steps: usize) {
        loop {
            let mut state = self.state();
            let number = state.begun;
            if number == state.companions.len() {
                if state.seekers == 0 {
                    return;
                }
                drop(state);
                wait(false);
                continue;
            }
            state.begun += 1;
            let file = state.companions[number].file;
            drop(state);
            let process = Process::new(self, Some(number), steps);
            // (It is closed with all that the process has.)
            let open = ManuallyDrop::new(Open { process: &process, number: file });
            until_killed(|| process.live(&open, number));
            let mut state = self.state();
            state.companions[number].is_alive = false;
            state.close(file);
            drop(state);
            wake_all();
        }
    }

    /// What must hold when all have ended.
    fn is_left_well(&self) {
        let state = self.state();
        assert!(state.held.is_empty(), "the lock is held for ever: {:?}", state.held);
        assert_eq!(state.seekers, 0);
    }
}

impl State {
    /// A session that was found must be that of a companion that has listened meanwhile. (For a moment after its death, the
    /// process that has started it has the lock as well, until it knows.)
    fn accepted(&self, begin: usize, found: Option<u64>) {
        let Some(session) = found else { return };
        let number = session.checked_sub(FIRST_SESSION).map(|number| number as usize);
        let companion = number.and_then(|number| self.companions.get(number));
        let listened = companion.and_then(|companion| companion.listened);
        let is_true = listened.is_some_and(|(_, until)| until >= begin);
        assert!(is_true, "session {session} of a dead companion: {listened:?}, began at {begin}");
    }

    fn ends_listening(&mut self, companion: usize) {
        let now = self.now;
        if let Some((_, until)) = &mut self.companions[companion].listened {
            *until = now.min(*until);
        }
    }

    fn close(&mut self, file: usize) {
        self.open[file] -= 1;
        if self.open[file] == 0 {
            (0..self.companions.len())
                .filter(|it| self.companions[*it].file == file)
                .collect::<Vec<_>>()
                .into_iter()
                .for_each(|it| self.ends_listening(it));
            self.held.retain(|(of, _)| *of != file);
        }
    }
}

/// Returns what it returns; `None` if it is killed.
fn until_killed<T>(life: impl FnOnce() -> T) -> Option<T> {
    let is_killed = |payload: &Box<dyn Any + Send>| payload.is::<Killed>();
    match catch_unwind(AssertUnwindSafe(life)) {
        Ok(it) => Some(it),
        Err(payload) if is_killed(&payload) => None,
        Err(payload) => resume_unwind(payload),
    }
}

impl<'a> Process<'a> {
    fn new(world: &'a World, companion: Option<usize>, steps: usize) -> Self {
        let (steps, started) = (Cell::new(steps), Cell::new(None));
        Self { world, companion, steps, waited_ms: Cell::new(0), started }
    }

    /// Before a system call. It may be the end.
    fn step(&self) {
        step();
        self.ends_if_killed();
        if self.steps.get() == 0 {
            resume_unwind(Box::new(Killed));
        }
        self.steps.set(self.steps.get() - 1);
        self.world.state().now += 1;
    }

    fn waits(&self, ms: u64) {
        self.waited_ms.set(self.waited_ms.get() + ms);
        assert!(self.waited_ms.get() <= 2 * REQUIRED.ms, "a process waits for ever");
    }

    fn ends_if_killed(&self) {
        let is_killed = |number: usize| self.world.state().companions[number].is_killed;
        if self.companion.is_some_and(is_killed) {
            resume_unwind(Box::new(Killed));
        }
    }

    /// Until all processes have found what they look for.
    fn stay(&self) {
        while self.world.state().seekers > 0 {
            wait(false);
            self.ends_if_killed();
        }
    }

    fn answer(&self, number: usize, piece: &str) {
        self.step();
        self.world.state().companions[number].answer.extend_from_slice(piece.as_bytes());
        wake_all();
    }

    /// What a companion does, from the fork on that makes it.
    fn live(&self, file: &Open<'_>, number: usize) {
        let process = FIRST_PROCESS + number as i32;
        let write = |line: &str| write_line(file, line.as_bytes()).expect("written");
        write(&format!("{}{process}", str::from_utf8(STARTING).expect("text")));
        match self.world.deed {
            deed @ (Deed::Listens | Deed::ListensAndEnds) => {
                write(&format!("session {}", FIRST_SESSION + number as u64));
                let mut state = self.world.state();
                state.companions[number].listened = Some((state.now, usize::MAX));
                drop(state);
                self.answer(number, "ready\n");
                if deed == Deed::Listens {
                    return self.stay();
                }
                file.unlock();
            }
            Deed::TakesSamples => {
                write("samples no privilege");
                self.answer(number, "samples no privilege\n");
                self.stay();
            }
            Deed::Refuses => {
                self.answer(number, "chase: syscalls are not recorded: no\n");
                write(&format!("failed {NOW_S} no"));
            }
            Deed::Hangs => self.stay(),
            Deed::Dribbles => {
                for _ in 0..2 {
                    self.answer(number, "r");
                }
                self.stay();
            }
            Deed::Lies => {
                write("session 18446744073709551616");
                self.answer(number, "ready\n");
            }
            Deed::Babbles => {
                write(&"session ".repeat(100));
                self.answer(number, &"ready".repeat(100));
            }
        }
    }
}

impl<'a> Seeker for &'a Process<'a> {
    type File = Open<'a>;
    type Answer = usize;

    fn open(&self, _reason: &mut Reason) -> Option<Open<'a>> {
        self.step();
        let mut state = self.world.state();
        let users = if self.world.forks { 2 } else { 1 };
        state.open.push(users);
        Some(Open { process: self, number: state.open.len() - 1 })
    }

    fn now_ms(&self) -> u64 {
        self.waited_ms.get()
    }

    fn now_s(&self) -> u64 {
        NOW_S
    }

    fn pause_ms(&self, ms: u64) {
        self.step();
        wait(true);
        self.waits(ms);
    }

    fn start(&self, file: &Open<'a>, reason: &mut Reason) -> Option<usize> {
        self.step();
        if !self.world.is_installed {
            reason.push(b"there is no chase-companion");
            return None;
        }
        let mut state = self.world.state();
        let live = |companion: &Companion| companion.is_alive && is_listening(companion);
        assert!(!state.companions.iter().any(live), "two companions at once");
        assert_eq!(state.held, [(file.number, Hold::Alone)], "without the lock");
        state.open[file.number] += 1;
        state.companions.push(Companion {
            file: file.number,
            answer: Vec::new(),
            heard: 0,
            is_alive: true,
            is_killed: false,
            listened: None,
        });
        let number = state.companions.len() - 1;
        drop(state);
        self.started.set(Some(number));
        wake_all();
        Some(number)
    }

    fn hear(&self, answer: &usize, limit_ms: u64, buffer: &mut [u8]) -> Option<usize> {
        self.step();
        let take = |buffer: &mut [u8]| {
            let mut state = self.world.state();
            let companion = &mut state.companions[*answer];
            let more = &companion.answer[companion.heard..];
            let len = more.len().min(buffer.len());
            buffer[..len].copy_from_slice(&more[..len]);
            companion.heard += len;
            (len > 0 || !companion.is_alive).then_some(len)
        };
        take(buffer).or_else(|| {
            // At worst, it comes when the time is all but over.
            self.waits(limit_ms);
            if limit_ms > 0 {
                wait(true);
            }
            take(buffer)
        })
    }

    fn kill(&self, process: i32) {
        self.step();
        let number = (process - FIRST_PROCESS) as usize;
        assert_eq!(self.started.get(), Some(number), "another's companion is killed");
        self.world.state().companions[number].is_killed = true;
        wake_all();
    }
}

/// Whether it has not stopped to.
fn is_listening(companion: &Companion) -> bool {
    companion.listened.is_none_or(|(_, until)| until == usize::MAX)
}

impl SessionFile for Open<'_> {
    type Error = ();

    fn is_own(&self) -> bool {
        self.process.step();
        self.process.world.is_own
    }

    fn lock(&self, how: Hold) -> Result<bool, ()> {
        self.process.step();
        let mut state = self.process.world.state();
        state.held.retain(|(of, _)| *of != self.number);
        let is_free = match how {
            Hold::Alone => state.held.is_empty(),
            Hold::Shared => state.held.iter().all(|(_, hold)| *hold == Hold::Shared),
        };
        if is_free {
            state.held.push((self.number, how));
        }
        Ok(is_free)
    }

    fn unlock(&self) {
        self.process.step();
        let mut state = self.process.world.state();
        state.held.retain(|(of, _)| *of != self.number);
        if let Some(number) = self.process.companion {
            state.ends_listening(number);
        }
    }

    fn read_start<'b>(&self, buffer: &'b mut [u8]) -> &'b [u8] {
        self.process.step();
        let state = self.process.world.state();
        let len = state.text.len().min(buffer.len());
        buffer[..len].copy_from_slice(&state.text[..len]);
        &buffer[..len]
    }

    fn write_at(&self, bytes: &[u8], offset: usize) -> Result<(), ()> {
        self.process.step();
        let mut state = self.process.world.state();
        let len = state.text.len().max(offset + bytes.len());
        state.text.resize(len, 0);
        state.text[offset..offset + bytes.len()].copy_from_slice(bytes);
        Ok(())
    }

    fn cut(&self, len: usize) -> Result<(), ()> {
        self.process.step();
        self.process.world.state().text.resize(len, 0);
        Ok(())
    }
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        // (What is killed closes its files as well, also if that is here.)
        let lives = std::thread::panicking() || until_killed(|| self.process.step()).is_some();
        self.process.world.state().close(self.number);
        if !lives {
            resume_unwind(Box::new(Killed));
        }
    }
}

type Actor<'a> = &'a (dyn Fn(&World) + Sync);

/// Runs processes beside a companion of one kind in every order; gives the number of runs.
fn run(make: impl Fn() -> World, actors: &[Actor<'_>], check: impl Fn(&State)) -> usize {
    every_order(SWITCHES, make, actors, |world| {
        world.is_left_well();
        check(&world.state());
    })
}

const ALL: &[Deed] = if cfg!(miri) {
    &[Deed::Listens, Deed::Hangs]
} else {
    &[
        Deed::Listens,
        Deed::ListensAndEnds,
        Deed::TakesSamples,
        Deed::Refuses,
        Deed::Hangs,
        Deed::Dribbles,
        Deed::Lies,
        Deed::Babbles,
    ]
};

/// One, or two at once, with a file in which a companion that is gone has left its session. What each of them must hold is asserted where
/// it happens: nobody waits too long, nobody accepts the session of a companion that has not listened meanwhile, there are no two
/// companions, and nobody's lock outlives it.
#[test]
fn whatever_the_companion_does() {
    for &deed in ALL {
        // (One is enough where they would do the same one after the other.)
        let is_one =
            matches!(deed, Deed::TakesSamples | Deed::Dribbles | Deed::Lies | Deed::Babbles);
        let seekers = if is_one { 1 } else { 2 };
        let seek: Actor<'_> = &|world| world.seek(PATIENT, FOR_EVER);
        let companion: Actor<'_> = &|world| world.be_companion(FOR_EVER);
        let best = Cell::new(0);
        let runs = run(
            || World::new(STALE, deed, seekers),
            &[companion, seek, seek][..=seekers],
            |state| {
                best.set(best.get().max(state.found.iter().flatten().count()));
                assert!(deed == Deed::ListensAndEnds || state.companions.len() < 3);
                assert!(deed != Deed::Listens || state.companions.len() == 1);
            },
        );
        let listens = matches!(deed, Deed::Listens | Deed::ListensAndEnds);
        assert_eq!(best.get(), if listens { 2 } else { 0 }, "that find one");
        assert!(runs >= LEAST, "{runs}");
    }
}

/// The companion is killed at each of its steps, and so is one of the processes.
#[test]
fn whoever_dies_at_any_step() {
    // A companion listens from its sixth step on, and has said so at the eighth; a process has the lock at its seventh, starts
    // one at the eighth, and has heard from it at the tenth. (Between the others, nobody sees a difference.)
    let of_companion = [0, 3, 4, 5, 6, 7].map(|steps| (FOR_EVER, steps));
    let of_process = [4, 6, 7, 8, 9, 10].map(|steps| (steps, FOR_EVER));
    let deaths = [of_companion, of_process].concat();
    let few = deaths.get(4..5).filter(|_| cfg!(miri));
    for &(own, others) in few.unwrap_or(&deaths) {
        let dies: Actor<'_> = &|world| world.seek(PATIENT, own);
        let seek: Actor<'_> = &|world| world.seek(PATIENT, FOR_EVER);
        let companion: Actor<'_> = &|world| world.be_companion(others);
        let make = || World::new(STALE, Deed::Listens, 2);
        assert!(run(make, &[dies, seek, companion], |_| ()) >= LEAST);
    }
}

/// Where the program must not run without it, a companion that hangs is killed, and the next process knows why.
#[test]
fn a_companion_that_hangs_is_killed_where_it_is_required() {
    for &deed in ALL {
        let seek: Actor<'_> = &|world| world.seek(REQUIRED, FOR_EVER);
        let companion: Actor<'_> = &|world| world.be_companion(FOR_EVER);
        // (One that has not yet said which process it is can't be killed.)
        let is_killed = Cell::new(false);
        run(
            || World::new("", deed, 1),
            &[seek, companion],
            |state| {
                let [it] = &state.companions[..] else { panic!("one is started") };
                let is_known = state.text.windows(FAILED.len()).any(|at| at == FAILED.as_bytes());
                assert!(is_known || !it.is_killed, "the next one does not know why");
                is_killed.set(is_killed.get() || it.is_killed);
            },
        );
        assert!(is_killed.get() || !matches!(deed, Deed::Hangs | Deed::Dribbles), "all live");
    }
}

/// Files of other users and of other programs stay as they are, and those of another version of this one.
#[test]
fn what_is_not_ours_is_left_alone() {
    let texts = ["precious", "chase companion 2\nsession 1\n", "chase companion 10\nsession 1\n"];
    for (text, is_own) in [(texts[0], true), (texts[1], true), (texts[2], true), (STALE, false)] {
        let seek: Actor<'_> = &|world| world.seek(PATIENT, FOR_EVER);
        run(
            || World { is_own, ..World::new(text, Deed::Listens, 2) },
            &[seek, seek],
            |state| {
                assert_eq!(state.text, text.as_bytes());
                assert_eq!(state.found, [None, None]);
                assert!(state.companions.is_empty());
            },
        );
    }
}

/// A fork's child may have the file open for ever: the lock does not stay.
#[test]
fn without_a_companion_no_lock_stays_in_a_forks_child() {
    let failed = format!("chase companion 1\nfailed {NOW_S} because\n");
    for text in [STALE, "", "precious", &failed] {
        let seek: Actor<'_> = &|world| world.seek(PATIENT, FOR_EVER);
        run(
            || {
                let world = World::new(text, Deed::Listens, 2);
                World { is_installed: false, forks: true, ..world }
            },
            &[seek, seek],
            |state| assert_eq!(state.found, [None, None]),
        );
    }
}

/// One that failed a short time ago is not tried again, unless it is required.
#[test]
fn a_failure_holds_for_a_while() {
    let at = |time_s: u64| format!("chase companion 1\nfailed {time_s} because\n");
    let cases = [(NOW_S, PATIENT, 0), (NOW_S - 100, PATIENT, 1), (NOW_S, REQUIRED, 1)];
    for (time_s, patience, started) in cases {
        let text = at(time_s);
        let seek: Actor<'_> = &|world| world.seek(patience, FOR_EVER);
        let companion: Actor<'_> = &|world| world.be_companion(FOR_EVER);
        run(
            || World::new(&text, Deed::Listens, 1),
            &[seek, companion],
            |state| {
                assert_eq!(state.companions.len(), started);
                assert!(started == 1 || state.reasons == ["because"], "{:?}", state.reasons);
            },
        );
    }
}

/// A companion that was started by hand, or by `chase record`, at the same time as a program.
#[test]
fn a_companion_that_announces_itself() {
    let announces: Actor<'_> = &|world| {
        let process = Process::new(world, None, FOR_EVER);
        let seeker = &process;
        let file = seeker.open(&mut Reason::new()).expect("open");
        if claim(&file).expect("locked") {
            let mut state = world.state();
            // Not among those that a process has started.
            assert_eq!(state.begun, state.companions.len(), "two companions at once");
            state.companions.push(Companion {
                file: file.number,
                answer: Vec::new(),
                heard: 0,
                is_alive: true,
                is_killed: false,
                listened: None,
            });
            state.begun += 1;
            let number = state.companions.len() - 1;
            drop(state);
            let line = format!("session {}", FIRST_SESSION + number as u64);
            write_line(&file, line.as_bytes()).expect("written");
            let mut state = world.state();
            state.companions[number].listened = Some((state.now, usize::MAX));
            drop(state);
            process.stay();
            let mut state = world.state();
            state.ends_listening(number);
            state.companions[number].is_alive = false;
        }
    };
    let seek: Actor<'_> = &|world| world.seek(PATIENT, FOR_EVER);
    let companion: Actor<'_> = &|world| world.be_companion(FOR_EVER);
    let make = || World::new(STALE, Deed::Listens, 1);
    assert!(run(make, &[announces, seek, companion], |_| ()) >= LEAST);
}
