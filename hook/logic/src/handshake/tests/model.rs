//! Processes that look for a companion, and companions of all kinds, as a test runs them. A system call is a step.

use std::any::Any;
use std::boxed::Box;
use std::cell::Cell;
use std::format;
use std::mem::ManuallyDrop;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::string::String;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::vec::Vec;

use super::super::*;
use crate::every_order::{step, wait, wake_all};
use crate::session::STARTING;

/// The line of a companion that is long dead, and its session.
pub(super) const STALE: &str = "chase companion 1\nsession 7\nidle 00000000000000000042\n";
pub(super) const PATIENT: Patience = Patience { ms: 10, is_required: false };
pub(super) const REQUIRED: Patience = Patience { ms: 30_000, is_required: true };
pub(super) const NOW_S: u64 = 1_000_000;
pub(super) const FIRST_PROCESS: i32 = 100;
pub(super) const FIRST_SESSION: u64 = 1_000;
pub(super) const FOR_EVER: usize = usize::MAX;
/// Switches away from a process that could go on, in a run: none for the interpreter, which takes long for each.
pub(super) const SWITCHES: usize = if cfg!(miri) { 0 } else { 1 };
/// Orders that there are at least.
pub(super) const LEAST: usize = if cfg!(miri) { 1 } else { 10 };

/// What a companion does once it was started.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Deed {
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
pub(super) struct World {
    pub(super) state: Mutex<State>,
    pub(super) deed: Deed,
    /// Whether there is a companion to start.
    pub(super) is_installed: bool,
    /// Whether the file is this user's.
    pub(super) is_own: bool,
    /// Whether another thread of each process forks while the file is open; the child keeps it.
    pub(super) forks: bool,
}

pub(super) struct State {
    pub(super) text: Vec<u8>,
    /// How many have each open file, by its number.
    pub(super) open: Vec<usize>,
    /// Which of them hold the lock.
    pub(super) held: Vec<(usize, Hold)>,
    pub(super) companions: Vec<Companion>,
    /// How many companions have begun.
    pub(super) begun: usize,
    /// Processes that still look.
    pub(super) seekers: usize,
    /// Counts steps.
    pub(super) now: usize,
    pub(super) found: Vec<Option<u64>>,
    pub(super) reasons: Vec<String>,
}

pub(super) struct Companion {
    pub(super) file: usize,
    pub(super) answer: Vec<u8>,
    pub(super) heard: usize,
    pub(super) is_alive: bool,
    pub(super) is_killed: bool,
    /// When it began to listen, and ended.
    pub(super) listened: Option<(usize, usize)>,
}

/// Ends a process at a step.
pub(super) struct Killed;

/// A process, which lives for so many steps.
pub(super) struct Process<'a> {
    pub(super) world: &'a World,
    pub(super) companion: Option<usize>,
    pub(super) steps: Cell<usize>,
    pub(super) waited_ms: Cell<u64>,
    pub(super) started: Cell<Option<usize>>,
}

pub(super) struct Open<'a> {
    pub(super) process: &'a Process<'a>,
    pub(super) number: usize,
}

impl World {
    pub(super) fn new(text: &str, deed: Deed, seekers: usize) -> Self {
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

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A process that looks for a companion, and is killed after so many steps.
    pub(super) fn seek(&self, patience: Patience, steps: usize) {
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
    pub(super) fn be_companion(&self, steps: usize) {
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
    pub(super) fn is_left_well(&self) {
        let state = self.state();
        assert!(state.held.is_empty(), "the lock is held for ever: {:?}", state.held);
        assert_eq!(state.seekers, 0);
    }
}

impl State {
    /// A session that was found must be that of a companion that has listened meanwhile. (For a moment after its death, the
    /// process that has started it has the lock as well, until it knows.)
    pub(super) fn accepted(&self, begin: usize, found: Option<u64>) {
        let Some(session) = found else { return };
        let number = session.checked_sub(FIRST_SESSION).map(|number| number as usize);
        let companion = number.and_then(|number| self.companions.get(number));
        let listened = companion.and_then(|companion| companion.listened);
        let is_true = listened.is_some_and(|(_, until)| until >= begin);
        assert!(is_true, "session {session} of a dead companion: {listened:?}, began at {begin}");
    }

    pub(super) fn ends_listening(&mut self, companion: usize) {
        let now = self.now;
        if let Some((_, until)) = &mut self.companions[companion].listened {
            *until = now.min(*until);
        }
    }

    pub(super) fn close(&mut self, file: usize) {
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
pub(super) fn until_killed<T>(life: impl FnOnce() -> T) -> Option<T> {
    let is_killed = |payload: &Box<dyn Any + Send>| payload.is::<Killed>();
    match catch_unwind(AssertUnwindSafe(life)) {
        Ok(it) => Some(it),
        Err(payload) if is_killed(&payload) => None,
        Err(payload) => resume_unwind(payload),
    }
}

impl<'a> Process<'a> {
    pub(super) fn new(world: &'a World, companion: Option<usize>, steps: usize) -> Self {
        let (steps, started) = (Cell::new(steps), Cell::new(None));
        Self { world, companion, steps, waited_ms: Cell::new(0), started }
    }

    /// Before a system call. It may be the end.
    pub(super) fn step(&self) {
        step();
        self.ends_if_killed();
        if self.steps.get() == 0 {
            resume_unwind(Box::new(Killed));
        }
        self.steps.set(self.steps.get() - 1);
        self.world.state().now += 1;
    }

    pub(super) fn waits(&self, ms: u64) {
        self.waited_ms.set(self.waited_ms.get() + ms);
        assert!(self.waited_ms.get() <= 2 * REQUIRED.ms, "a process waits for ever");
    }

    pub(super) fn ends_if_killed(&self) {
        let is_killed = |number: usize| self.world.state().companions[number].is_killed;
        if self.companion.is_some_and(is_killed) {
            resume_unwind(Box::new(Killed));
        }
    }

    /// Until all processes have found what they look for.
    pub(super) fn stay(&self) {
        while self.world.state().seekers > 0 {
            wait(false);
            self.ends_if_killed();
        }
    }

    pub(super) fn answer(&self, number: usize, piece: &str) {
        self.step();
        self.world.state().companions[number].answer.extend_from_slice(piece.as_bytes());
        wake_all();
    }

    /// What a companion does, from the fork on that makes it.
    pub(super) fn live(&self, file: &Open<'_>, number: usize) {
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
pub(super) fn is_listening(companion: &Companion) -> bool {
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
