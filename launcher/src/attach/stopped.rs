//! All threads of a process, stopped where they hold nothing.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{anyhow, bail, ensure};
use libc::user_regs_struct;

use super::memory::Memory;
use super::places::{Places, Where};
use super::process::{Process, has_pending_signal};
use super::resume::{Rests, resumed};
use super::trace::{Stop, Thread};
use crate::clock::monotonic;

/// A thread that may hold something is let run so long.
const SHORT: Duration = Duration::from_micros(100);
/// That doubles with each few looks, so often.
const MOST_DOUBLED: u32 = 7;
/// If it is where it was so often, it waits there, and would, whether it is stopped or not.
const OFTEN: u32 = 20;
/// Where others have stood still for so long, and one that was looked at so often may still hold something, all are let go for as long, and
/// stopped anew: perhaps it is elsewhere by then.
const STANDING: Duration = Duration::from_millis(50);
const LOOKS: u32 = OFTEN + 4;
/// All threads stop within this time, or are let go for good.
const PATIENCE: Duration = Duration::from_secs(5);

/// A thread that has stopped.
#[derive(Clone, Copy)]
pub(super) struct At {
    pub(super) thread: Thread,
    pub(super) registers: user_regs_struct,
    pub(super) place: Where,
    /// When that was seen, by `CLOCK_MONOTONIC`.
    pub(super) stopped: Duration,
}

/// The threads, which are let go when this is dropped.
pub(super) struct Stopped<'a> {
    process: &'a Process,
    memory: &'a Memory,
    /// Where they do the rest of system calls, if the library is there.
    pub(super) rests: Option<Rests>,
    threads: BTreeMap<i32, State>,
    /// When the first one stopped that was not let go again.
    pub(super) since: Option<Instant>,
    /// How long they stood still before that.
    pub(super) stood_before: Duration,
}

struct State {
    thread: Thread,
    /// Where it is, if it has stopped.
    at: Option<At>,
    /// Where it was before, and how often.
    latest: (u64, u64, u32),
    /// When it is asked again: each time later, since some system calls begin anew after each stop.
    ask_at: Option<Instant>,
    looks: u32,
}

impl<'a> Stopped<'a> {
    /// Stops all threads. The calling thread traces them from then on.
    pub(super) fn stop(
        process: &'a Process,
        places: &Places,
        memory: &'a Memory,
        rests: Option<Rests>,
    ) -> anyhow::Result<Self> {
        let until = Instant::now() + PATIENCE;
        let mut stood_before = Duration::ZERO;
        loop {
            let mut this = Self {
                process,
                memory,
                rests,
                threads: BTreeMap::new(),
                since: None,
                stood_before,
            };
            if this.try_to_stop(places, until)? {
                return Ok(this);
            }
            let stood = this.stood();
            drop(this);
            std::thread::sleep(stood - stood_before);
            stood_before = stood;
        }
    }

    /// Whether all have stopped; otherwise they are to be let go, and stopped anew.
    fn try_to_stop(&mut self, places: &Places, until: Instant) -> anyhow::Result<bool> {
        loop {
            let all_stopped = self.handle_stops(places)?;
            // Those that were made meanwhile, by one that had not stopped yet.
            let are_known = all_stopped && !self.seize_new()?;
            if are_known && self.threads().next().is_some() {
                return Ok(true);
            }
            if are_known {
                // All wait for a child that has their memory: nobody is there to do what is to be done.
                std::thread::sleep(SHORT);
            }
            ensure!(self.process.is_there(), self.process.why_ended());
            if Instant::now() > until {
                return Err(self.why_not(are_known));
            }
            let is_long = self.since.is_some_and(|since| since.elapsed() > STANDING);
            let holds = |state: &State| state.at.is_none() && state.looks >= LOOKS;
            if is_long && self.threads.values().any(holds) {
                return Ok(false);
            }
        }
    }

    fn why_not(&self, are_known: bool) -> anyhow::Error {
        if are_known {
            return anyhow!(
                "it waits for a child that was made by vfork, and can't be stopped before that has begun a program, or ended"
            );
        }
        let held = self.threads.values().filter(|state| state.at.is_none()).count();
        let (one, are) = if held == 1 { ("one", "is") } else { ("some", "are") };
        anyhow!(
            "{one} of its threads {are} never where they can be stopped: in the allocator, the loader, or a system call that does not end. Another try may find them elsewhere; `chase record` starts a program under chase"
        )
    }

    /// How long threads have stood still.
    fn stood(&self) -> Duration {
        self.stood_before + self.since.map_or(Duration::ZERO, |since| since.elapsed())
    }

    fn seize_new(&mut self) -> anyhow::Result<bool> {
        let mut is_new = false;
        for tid in self.process.threads() {
            if self.threads.contains_key(&tid) {
                continue;
            }
            match Thread::seize(tid) {
                Ok(thread) => {
                    // (If it has ended, the next look tells.)
                    let _ = thread.interrupt();
                    self.threads.insert(
                        tid,
                        State { thread, at: None, latest: (0, 0, 0), ask_at: None, looks: 0 },
                    );
                    is_new = true;
                }
                Err(error) if error.raw_os_error() == Some(libc::ESRCH) => {}
                Err(_) => bail!("{}", self.process.why_not_traced()),
            }
        }
        Ok(is_new)
    }

    /// Sees to those that have not stopped yet. Gives whether all have.
    fn handle_stops(&mut self, places: &Places) -> anyhow::Result<bool> {
        let letting = Letting { pid: self.process.pid, memory: self.memory, rests: self.rests };
        let mut all = true;
        let mut gone = Vec::new();
        for (&tid, state) in self.threads.iter_mut().filter(|(_, state)| state.at.is_none()) {
            let thread = state.thread;
            if let Some(at) = state.ask_at {
                all = false;
                if Instant::now() >= at {
                    state.ask_at = None;
                    let _ = thread.interrupt();
                }
                continue;
            }
            match thread.stop_reason() {
                None => all &= self.process.waits_for_child(tid),
                Some(Stop::Gone) => gone.push(tid),
                Some(Stop::Signal(signal)) => {
                    thread.go_on(signal)?;
                    all = false;
                }
                Some(Stop::Group) => {
                    let pid = self.process.pid;
                    bail!(
                        "process {pid} was stopped meanwhile: let it go on first (kill -CONT {pid})"
                    )
                }
                Some(Stop::Syscall) => {
                    thread.go_on(0)?;
                    all = false;
                }
                Some(Stop::Interrupted) => {
                    let Ok(registers) = thread.registers() else {
                        all = false;
                        continue;
                    };
                    let place = places.locate(&registers, self.memory);
                    let here = (registers.rip, registers.rsp);
                    let often = if (state.latest.0, state.latest.1) == here {
                        state.latest.2 + 1
                    } else {
                        0
                    };
                    state.latest = (here.0, here.1, often);
                    let waits = often > OFTEN
                        && may_wait(&registers)
                        && !places.is_in_library(registers.rip);
                    if place == Where::Holds && !waits {
                        letting.go(thread, &registers, false);
                        state.ask_at = Some(
                            Instant::now() + SHORT * (1 << (state.looks / 4).min(MOST_DOUBLED)),
                        );
                        state.looks += 1;
                        all = false;
                    } else {
                        state.at = Some(At { thread, registers, place, stopped: monotonic() });
                        self.since.get_or_insert_with(Instant::now);
                    }
                }
            }
        }
        for tid in gone {
            self.threads.remove(&tid);
        }
        if !all {
            std::thread::sleep(SHORT);
        }
        Ok(all)
    }

    /// Those that have stopped: all but some that wait for a child that has their memory.
    pub(super) fn threads(&self) -> impl Iterator<Item = &At> {
        self.threads.values().filter_map(|state| state.at.as_ref())
    }
}

/// Whether a thread may wait where it is, and not be in the middle of making a process.
fn may_wait(registers: &user_regs_struct) -> bool {
    const MAKING: [libc::c_long; 4] =
        [libc::SYS_clone, libc::SYS_clone3, libc::SYS_fork, libc::SYS_vfork];
    let number = registers.orig_rax as libc::c_long;
    number >= 0 && !MAKING.contains(&number)
}

impl Drop for Stopped<'_> {
    fn drop(&mut self) {
        let letting = Letting { pid: self.process.pid, memory: self.memory, rests: self.rests };
        for state in self.threads.values() {
            match &state.at {
                Some(at) => letting.go(at.thread, &at.registers, true),
                None => {
                    let _ = state.thread.interrupt();
                    if state.thread.wait(Duration::from_millis(20)).is_ok()
                        && let Ok(registers) = state.thread.registers()
                    {
                        letting.go(state.thread, &registers, true);
                    }
                }
            }
        }
    }
}

/// Letting threads of a process go.
struct Letting<'a> {
    pid: i32,
    memory: &'a Memory,
    rests: Option<Rests>,
}

impl Letting<'_> {
    /// Lets a thread go that has stopped there, `for_good` or to be stopped again. A system call that the stop has ended goes on,
    /// unless a signal waits that is to end it.
    fn go(&self, thread: Thread, registers: &user_regs_struct, for_good: bool) {
        if let Some(resumed) = resumed(registers, self.rests.as_ref(), self.pid, self.memory)
            && !has_pending_signal(self.pid, thread.tid)
        {
            let _ = thread.set_registers(&resumed);
        }
        if for_good {
            thread.release();
        } else {
            let _ = thread.go_on(0);
        }
    }
}
