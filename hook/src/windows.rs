//! Imports that are unhooked, and hooked again for short windows.
//!
//! Where even counting a call is too dear, the GOT entry of the import goes back to the real function.
//! In windows it leads to the stub of another slot, the import's *twin*, so that what was counted before
//! stays exact, and what is counted in windows can be multiplied. (A call that is under way at an edge
//! belongs to the slot that it began in.) Only the entry changes, by one aligned store, so this is safe
//! at any moment, whatever other threads do.
//!
//! Only imports of objects that were there at the start are unhooked: those are never unloaded, so the
//! entry can be written without asking the dynamic linker, whose locks the application may hold.
//!
//! Nothing of ours runs while an import is unhooked, so a window is opened by the first other call that
//! comes to the slow path after it is due, and closed by the first of any. When it is due is random. If
//! nobody comes in time, the time since the last window stands in the recording as not seen: the share
//! of such pauses is that of the time in which no window can open. Where that happens often, one of the
//! imports is hooked again for good, and opens the windows of the others.
//!
//! How long windows are open and closed is measured in CPU time of the process: it makes no calls while
//! it sleeps. The kernel adds the CPU time of other threads that run only at its ticks, which are longer than
//! a window; so as soon as there is a second thread, all is hooked again for good.

use core::cell::UnsafeCell;
use core::ptr;
use core::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};

use chase_format::layout::{TWIN_USED, TwinRecord};

use crate::arch::{self, STUBS};
use crate::signals::SignalsBlocked;
use crate::slots::Entry;
use crate::{clock, loading, process, recording, sampling, sys};

/// Twins that a process can have. Their slots are the last ones.
const TWINS: usize = 256;
const FIRST: usize = STUBS - TWINS;
/// Whether the hook is built for tests, to unhook all it can, and hook it again, all the time.
const STRESS: bool = cfg!(feature = "stress");
/// Windows of the twins that an import has one after the other: how long they are, and how many times
/// as long they are closed.
const LEVELS: [Level; 3] = [
    Level { open_us: if STRESS { 10 } else { 1_000 }, closed: 3 },
    Level { open_us: if STRESS { 5 } else { 500 }, closed: 15 },
    Level { open_us: 250, closed: 63 },
];
/// A window that is opened later than this after it was due stands for no pause.
const LATE_US: u64 = 2_000;
/// Where such pauses are more than this part of the time, and not just a few (the whole machine may have been
/// interrupted), others don't pass by often enough any more.
const LATE_PART: u64 = 16;
const FEW_LATE: u32 = 4;

#[derive(Clone, Copy)]
struct Level {
    open_us: u64,
    closed: u64,
}

/// Where an entry leads.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// To the twin's stub.
    Open,
    /// To the real function.
    Closed,
    /// To the import's own stub, or wherever somebody else has made it lead.
    Ended,
}

struct Twin {
    entry: Entry,
    of: u32,
    level: usize,
    phase: Phase,
    /// When it is to be opened, or closed.
    edge_ticks: u64,
    /// CPU time of the process at the latest edge, and the pause that was chosen then.
    since_cpu_ns: u64,
    pause_ns: u64,
    /// Calls in the latest window.
    calls: u64,
    /// Pauses that ended too late.
    late: u32,
    /// It is of the process that this one is a fork of.
    inherited: bool,
    record: *mut TwinRecord,
}

struct Windows(UnsafeCell<State>);
// SAFETY: it is touched only by who holds what `loading::try_patching` gives, or after a fork in the
// child, which has one thread.
unsafe impl Sync for Windows {}

struct State {
    twins: [Option<Twin>; TWINS],
    count: usize,
    random: u64,
}

static WINDOWS: Windows =
    Windows(UnsafeCell::new(State { twins: [const { None }; TWINS], count: 0, random: 0 }));
/// The first slot that no import gets.
static FIRST_TWIN: AtomicUsize = AtomicUsize::new(STUBS);
/// When the next edge is due, in ticks.
static NEXT_EDGE: AtomicU64 = AtomicU64::new(u64::MAX);
/// When a call of a slot that is none of a twin passed by last, in ticks.
static LATEST_HOOKED: AtomicU64 = AtomicU64::new(0);
/// How often an import was unhooked, or its windows made rarer.
static CHANGES: AtomicU32 = AtomicU32::new(0);
/// Calls that were credited to each twin in its window, and what they cost, in 1/1024 ticks.
static CALLS: [AtomicU64; TWINS] = [const { AtomicU64::new(0) }; TWINS];
static COSTS: [AtomicU64; TWINS] = [const { AtomicU64::new(0) }; TWINS];
/// Keeps slots for twins. Called while there is one thread, before there are any slots.
pub(crate) fn begin() {
    FIRST_TWIN.store(FIRST, Ordering::Relaxed);
}

/// The first slot that no import gets.
pub(crate) fn first_twin() -> usize {
    FIRST_TWIN.load(Ordering::Relaxed)
}

/// Whether a slot is a twin.
pub(crate) fn is_twin(slot: u32) -> bool {
    slot as usize >= first_twin()
}

/// Notes that `calls` were credited to a slot, and what they cost, in 1/1024 ticks.
pub(crate) fn count(slot: u32, calls: u64, cost: u64) {
    let place = (slot as usize).checked_sub(FIRST);
    let sums = place.and_then(|place| Some((CALLS.get(place)?, COSTS.get(place)?)));
    if let Some((all_calls, all_cost)) = sums {
        all_calls.fetch_add(calls, Ordering::Relaxed);
        all_cost.fetch_add(cost, Ordering::Relaxed);
    }
}

/// What was noted since this was last asked: calls, and their cost.
fn take_counts(place: usize) -> (u64, u64) {
    let take =
        |sums: &[AtomicU64; TWINS]| sums.get(place).map_or(0, |it| it.swap(0, Ordering::Relaxed));
    (take(&CALLS), take(&COSTS))
}

/// Opens and closes what is due, at the time `now`, when a call of `slot` passes by.
pub(crate) fn pass_by(now: u64, slot: u32) {
    if !is_twin(slot) {
        LATEST_HOOKED.store(now, Ordering::Relaxed);
    }
    if now >= NEXT_EDGE.load(Ordering::Relaxed) {
        change(|state, moment| state.pass_edges(moment));
    }
}

/// Makes calls of a slot rarer to be seen: unhooks an import, or, of a twin, makes its windows rarer.
/// False if that can't be.
pub(crate) fn lower(slot: u32) -> bool {
    change(|state, moment| state.lower(slot, moment)).unwrap_or(false)
}

/// A number that differs whenever [`lower`] has changed anything.
pub(crate) fn changes() -> u32 {
    CHANGES.load(Ordering::Relaxed)
}

/// At the end of the process or its image, and before it gives up the right to system calls: hooks all
/// again.
pub(crate) fn finish() {
    change(|state, moment| {
        for place in 0..state.count {
            state.end(place, moment);
        }
        NEXT_EDGE.store(u64::MAX, Ordering::Relaxed);
    });
}

/// In a fork's child, which has one thread: begins anew, with all hooked, in the new recording. (A call that
/// was open at the fork may be one of a twin.)
pub(crate) fn after_fork_in_child() {
    // SAFETY: there is no other thread.
    let state = unsafe { &mut *WINDOWS.0.get() };
    for place in 0..state.count {
        take_counts(place);
        let Some(twin) = state.twins.get_mut(place).and_then(Option::as_mut) else { continue };
        twin.record = new_record((FIRST + place) as u32, twin.of);
        twin.inherited = true;
        state.hook(place);
    }
    NEXT_EDGE.store(u64::MAX, Ordering::Relaxed);
}

/// Now, by the clock of the recording and by that of the process's work.
#[derive(Clone, Copy)]
struct Moment {
    ticks: u64,
    cpu_ns: u64,
    ticks_per_us: u64,
}

impl Moment {
    fn now() -> Self {
        Self {
            ticks: clock::now(),
            cpu_ns: sys::clock_ns(libc::CLOCK_PROCESS_CPUTIME_ID),
            ticks_per_us: clock::ticks_per_us().unwrap_or(1),
        }
    }

    /// Whether calls that are hooked for good have passed by lately.
    fn is_passed_by(self) -> bool {
        let since = self.ticks.saturating_sub(LATEST_HOOKED.load(Ordering::Relaxed));
        since <= LATE_US * self.ticks_per_us || STRESS
    }
}

/// Does `what` where entries may be changed now: not by a child that shares or has copied the memory of
/// the process that the recording is of, and not while somebody else does.
fn change<T>(what: impl FnOnce(&mut State, Moment) -> T) -> Option<T> {
    if recording::is_confined() || first_twin() == STUBS || !process::memory_is_ours() {
        return None;
    }
    let _signals = SignalsBlocked::new();
    let _held = loading::try_patching()?;
    if !process::is_own() {
        return None;
    }
    // SAFETY: nobody else touches it meanwhile.
    Some(what(unsafe { &mut *WINDOWS.0.get() }, Moment::now()))
}

/// The record of a twin in the recording; null if there is no room.
fn new_record(slot: u32, of: u32) -> *mut TwinRecord {
    let Some(record) = recording::twin_record() else { return ptr::null_mut() };
    // SAFETY: the record is in the mapping; `state` makes it readable, last.
    unsafe {
        ((*record).slot, (*record).of) = (slot, of);
        AtomicU32::from_ptr(&raw mut (*record).state).store(TWIN_USED, Ordering::Release);
    }
    record
}

impl State {
    fn pass_edges(&mut self, moment: Moment) {
        // Of those that are often late, the one that is called least, but is called.
        let mut rarest: Option<(u64, usize)> = None;
        for place in 0..self.count {
            let slot = (FIRST + place) as u32;
            let random = self.random(moment);
            let Some(twin) = self.twins.get_mut(place).and_then(Option::as_mut) else { continue };
            if twin.phase == Phase::Ended || twin.edge_ticks > moment.ticks {
                continue;
            }
            if !sampling::may_be_unhooked(slot) {
                self.end(place, moment);
                continue;
            }
            match twin.phase {
                // As long as nobody would open it again, it stays open.
                Phase::Open if !moment.is_passed_by() => twin.edge_ticks = moment.ticks,
                Phase::Open => twin.close(slot, moment, random),
                Phase::Closed => {
                    if twin.open(slot, moment)
                        && twin.calls > 0
                        && rarest.is_none_or(|(calls, _)| twin.calls < calls)
                    {
                        rarest = Some((twin.calls, place));
                    }
                }
                Phase::Ended => {}
            }
        }
        if let Some((_, place)) = rarest.filter(|_| !STRESS) {
            self.end(place, moment);
        }
        self.note_next_edge();
    }

    fn note_next_edge(&self) {
        let active = self.twins.iter().flatten().filter(|twin| twin.phase != Phase::Ended);
        let next = active.map(|twin| twin.edge_ticks).min();
        NEXT_EDGE.store(next.unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    fn lower(&mut self, slot: u32, moment: Moment) -> bool {
        let place = (slot as usize).checked_sub(FIRST);
        let (of, level) = match place.map(|place| self.twins.get(place).and_then(Option::as_ref)) {
            // Hooked again for good.
            None if self.has_had(slot) => return false,
            None => (slot, 0),
            Some(Some(twin)) if twin.phase != Phase::Ended => (twin.of, twin.level + 1),
            Some(_) => return false,
        };
        if level >= LEVELS.len() || self.count == TWINS || recording::stopped() {
            return false;
        }
        let Some(entry) = loading::lasting_entry(of) else { return false };
        let new_slot = (FIRST + self.count) as u32;
        let record = new_record(new_slot, of);
        if record.is_null() {
            return false;
        }
        if let Some(place) = place {
            self.end(place, moment);
        }
        arch::set_target(new_slot as usize, arch::target(of as usize));
        sampling::describe_twin(new_slot as usize, of as usize);
        let random = self.random(moment);
        let mut twin = Twin {
            entry,
            of,
            level,
            phase: Phase::Closed,
            edge_ticks: 0,
            since_cpu_ns: moment.cpu_ns,
            pause_ns: 0,
            calls: 0,
            late: 0,
            inherited: false,
            record,
        };
        if !twin.store(arch::stub(of as usize), arch::target(of as usize)) {
            return false;
        }
        twin.pause(moment, random);
        CHANGES.fetch_add(1, Ordering::Relaxed);
        let place = self.count;
        if let Some(free) = self.twins.get_mut(place) {
            *free = Some(twin);
            self.count += 1;
        }
        self.note_next_edge();
        true
    }

    /// Whether an import has, or had, a twin of this process.
    fn has_had(&self, slot: u32) -> bool {
        self.twins.iter().flatten().any(|twin| twin.of == slot && !twin.inherited)
    }

    /// Hooks the import of a twin again.
    fn end(&mut self, place: usize, moment: Moment) {
        if let Some(twin) = self.twins.get_mut(place).and_then(Option::as_mut) {
            twin.account((FIRST + place) as u32, moment);
            self.hook(place);
        }
    }

    fn hook(&mut self, place: usize) {
        let Some(twin) = self.twins.get_mut(place).and_then(Option::as_mut) else { return };
        let slot = FIRST + place;
        let from = match twin.phase {
            Phase::Open => arch::stub(slot),
            Phase::Closed => arch::target(twin.of as usize),
            Phase::Ended => return,
        };
        twin.store(from, arch::stub(twin.of as usize));
        twin.phase = Phase::Ended;
    }

    /// A xorshift generator's next number (Marsaglia).
    fn random(&mut self, moment: Moment) -> u64 {
        let mut x = if self.random == 0 { moment.ticks | 1 } else { self.random };
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        self.random = x;
        x
    }
}

impl Twin {
    fn level(&self) -> Level {
        LEVELS.get(self.level).copied().unwrap_or(LEVELS[0])
    }

    /// Gives whether this is late, and was so often before.
    fn open(&mut self, slot: u32, moment: Moment) -> bool {
        let was_late = self.account(slot, moment);
        if self.store(arch::target(self.of as usize), arch::stub(slot as usize)) {
            self.phase = Phase::Open;
            // What opening took is no part of the window.
            self.since_cpu_ns = sys::clock_ns(libc::CLOCK_PROCESS_CPUTIME_ID);
        }
        let open_us = self.level().open_us;
        self.edge_ticks = moment.ticks + open_us * moment.ticks_per_us;
        was_late && !self.record.is_null() && {
            // SAFETY: the record is in the mapping.
            let TwinRecord { on_ns, off_ns, unseen_ns, .. } = unsafe { *self.record };
            self.late > FEW_LATE && unseen_ns > (on_ns + off_ns) / LATE_PART
        }
    }

    fn close(&mut self, slot: u32, moment: Moment, random: u64) {
        self.account(slot, moment);
        if self.store(arch::stub(slot as usize), arch::target(self.of as usize)) {
            self.phase = Phase::Closed;
        }
        self.pause(moment, random);
    }

    /// Chooses when the next window is due: after half of the usual pause to one and a half.
    fn pause(&mut self, moment: Moment, random: u64) {
        const PARTS: u64 = 1024;
        let Level { open_us, closed } = self.level();
        let pause_ns = open_us * closed * 1000 * (PARTS / 2 + random % PARTS) / PARTS;
        self.pause_ns = pause_ns;
        self.edge_ticks = moment.ticks + self.pause_ns * moment.ticks_per_us / 1000;
    }

    /// Puts the time since the latest edge, and the calls of a window, into the recording. Gives whether
    /// that was a pause that ended too late.
    fn account(&mut self, slot: u32, moment: Moment) -> bool {
        let (calls, cost) = take_counts(slot as usize - FIRST);
        let cpu_ns = moment.cpu_ns.saturating_sub(self.since_cpu_ns);
        self.since_cpu_ns = moment.cpu_ns;
        if self.record.is_null() {
            return false;
        }
        // SAFETY: the record is in the mapping, and only who may change entries writes it.
        let record = unsafe { &mut *self.record };
        match self.phase {
            Phase::Open => {
                // In a window the program gets less done in as much time.
                let cost_ns = (cost / 1024 * 1000 / moment.ticks_per_us).min(cpu_ns / 4 * 3);
                let on_ns = cpu_ns - cost_ns;
                let open_us = on_ns / 1000;
                self.calls = calls;
                let add = |sum: &mut u64, a: u64, b: u64| {
                    *sum = sum.saturating_add(a.saturating_mul(b));
                };
                add(&mut record.calls, calls, 1);
                add(&mut record.calls_squared, calls, calls);
                add(&mut record.calls_open_us, calls, open_us);
                add(&mut record.open_us_squared, open_us, open_us);
                record.on_ns += on_ns;
                record.cost_ns += cost_ns;
                record.windows += 1;
            }
            Phase::Closed if self.is_late(moment, cpu_ns) => {
                record.unseen_ns += cpu_ns;
                self.late += 1;
                return true;
            }
            Phase::Closed => record.off_ns += cpu_ns,
            Phase::Ended => {}
        }
        false
    }

    /// Whether a pause of so much CPU time ends too late: by the clock, and also by the CPU time, since
    /// a process that sleeps is not late.
    fn is_late(&self, moment: Moment, cpu_ns: u64) -> bool {
        let late_ticks = moment.ticks.saturating_sub(self.edge_ticks);
        late_ticks > LATE_US * moment.ticks_per_us && cpu_ns > self.pause_ns + LATE_US * 1000
    }

    /// Makes the entry lead to `to` instead of to `from`. If it does not lead there, somebody else has
    /// changed it, and it is left alone from now on.
    fn store(&mut self, from: usize, to: usize) -> bool {
        let Entry { got, relro: (start, len) } = self.entry;
        // SAFETY: the entry is an aligned word of an object that is never unloaded.
        let entry = unsafe { AtomicUsize::from_ptr(ptr::with_exposed_provenance_mut(got)) };
        let writable = libc::PROT_READ | libc::PROT_WRITE;
        if entry.load(Ordering::Relaxed) != from || to == 0 {
            self.phase = Phase::Ended;
            return false;
        }
        if len > 0 && sys::protect(start, len, writable).is_err() {
            return false;
        }
        entry.store(to, Ordering::Release);
        if len > 0 {
            // Where that fails, the page stays writable, as it was before relocation ended.
            let _ = sys::protect(start, len, libc::PROT_READ);
        }
        true
    }
}
