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
//! How long windows are open and closed is measured in time that the process works ([`work`]): it makes no
//! calls while it sleeps.

mod twin;
mod work;

use core::cell::UnsafeCell;
use core::ptr;
use core::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};

use chase_format::layout::{TWIN_USED, TwinRecord};

use self::twin::{LEVELS, Phase, Twin};
use self::work::Moment;
use crate::arch::{self, STUBS};
use crate::signals::SignalsBlocked;
use crate::{loading, process, recording, sampling};

/// Twins that a process can have. Their slots are the last ones.
const TWINS: usize = 256;
const FIRST: usize = STUBS - TWINS;
/// Whether the hook is built for tests, to unhook all it can, and hook it again, all the time.
const STRESS: bool = cfg!(feature = "stress");
/// A window that is opened later than this after it was due stands for no pause.
const LATE_US: u64 = 2_000;

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
fn take_counts(slot: u32) -> (u64, u64) {
    let place = slot as usize - FIRST;
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
/// False if that can't be; `None` if it can't be now, since somebody else changes entries.
pub(crate) fn lower(slot: u32) -> Option<bool> {
    change(|state, moment| state.lower(slot, moment))
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
        take_counts((FIRST + place) as u32);
        let Some(twin) = state.twins.get_mut(place).and_then(Option::as_mut) else { continue };
        twin.record = new_record((FIRST + place) as u32, twin.of);
        twin.inherited = true;
        state.hook(place);
    }
    NEXT_EDGE.store(u64::MAX, Ordering::Relaxed);
}

/// Whether calls that are hooked for good have passed by lately.
fn is_passed_by(moment: Moment) -> bool {
    let since = moment.ticks.saturating_sub(LATEST_HOOKED.load(Ordering::Relaxed));
    since <= LATE_US * moment.ticks_per_us || STRESS
}

/// Does `what` where entries may be changed now: not by a child that shares or has copied the memory of
/// the process that the recording is of, and not while somebody else does.
fn change<T>(what: impl FnOnce(&mut State, Moment) -> T) -> Option<T> {
    if recording::is_confined() || first_twin() == STUBS || !process::memory_is_ours() {
        return None;
    }
    let _signals = SignalsBlocked::new();
    let cpu_ns = work::cpu_ns();
    let _held = loading::try_patching()?;
    if !process::is_own() {
        return None;
    }
    // SAFETY: nobody else touches it meanwhile.
    Some(what(unsafe { &mut *WINDOWS.0.get() }, Moment::now(cpu_ns)))
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
                Phase::Open if !is_passed_by(moment) => {
                    twin.account(slot, moment);
                    twin.edge_ticks = moment.ticks;
                }
                Phase::Open => twin.close(slot, moment, random),
                Phase::Closed => {
                    if twin.open(slot, moment)
                        && twin.calls() > 0
                        && rarest.is_none_or(|(calls, _)| twin.calls() < calls)
                    {
                        rarest = Some((twin.calls(), place));
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
        if !arch::set_target(new_slot as usize, arch::target(of as usize)) {
            return false;
        }
        sampling::describe_twin(new_slot as usize, of as usize);
        let random = self.random(moment);
        let mut twin = Twin::new(entry, of, level, moment, record);
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
            twin.end_pause();
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
