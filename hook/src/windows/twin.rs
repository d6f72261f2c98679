//! One import that is unhooked: where its entry leads, and what its windows have shown.

use core::ptr;
use core::sync::atomic::{AtomicUsize, Ordering};

use chase_format::layout::{TwinRecord, Window};

use super::work::{Moment, Work};
use super::{LATE_US, STRESS, take_counts};
use crate::arch;
use crate::slots::Entry;
use crate::sys;

/// Windows of the twins that an import has one after the other: how long they are, and how many times
/// as long they are closed.
pub(super) const LEVELS: [Level; 3] = [
    Level { open_us: if STRESS { 10 } else { 1_000 }, closed: 3 },
    Level { open_us: if STRESS { 5 } else { 500 }, closed: 15 },
    Level { open_us: 250, closed: 63 },
];
/// Where such pauses are more than this part of the time, and not just a few (the whole machine may have been
/// interrupted), others don't pass by often enough any more.
const LATE_PART: u64 = 16;
const FEW_LATE: u32 = 4;
/// What calls in a window cost, compared to those of a loop, by which the costs were measured: their countdown
/// is not where those of the first slots are, and neither it nor the stub has been used lately. (Seen in
/// `sort`, whose functions take 30 ns: 2.2 to 2.4; where they take 100 ns: 1.5.)
const COLD: u64 = 2;

#[derive(Clone, Copy)]
pub(super) struct Level {
    open_us: u64,
    closed: u64,
}

/// Where an entry leads.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// To the twin's stub.
    Open,
    /// To the real function.
    Closed,
    /// To the import's own stub, or wherever somebody else has made it lead.
    Ended,
}

pub(super) struct Twin {
    entry: Entry,
    pub(super) of: u32,
    pub(super) level: usize,
    pub(super) phase: Phase,
    /// When it is to be opened, or closed.
    pub(super) edge_ticks: u64,
    /// The latest edge, and the pause that was chosen then.
    since: Moment,
    pause_ns: u64,
    /// Up to there, CPU time of all threads, and the time in which they worked.
    cpu_ns: u64,
    worked_ns: u64,
    /// The latest window, and the pause since then, if a window is to stand for it.
    window: Option<Window>,
    paused_ns: u64,
    /// Pauses that ended too late.
    late: u32,
    /// It is of the process that this one is a fork of.
    pub(super) inherited: bool,
    pub(super) record: *mut TwinRecord,
}

impl Twin {
    /// One whose first pause begins.
    pub(super) fn new(
        entry: Entry,
        of: u32,
        level: usize,
        since: Moment,
        record: *mut TwinRecord,
    ) -> Self {
        Self {
            entry,
            of,
            level,
            phase: Phase::Closed,
            edge_ticks: 0,
            since,
            pause_ns: 0,
            cpu_ns: 0,
            worked_ns: 0,
            window: None,
            paused_ns: 0,
            late: 0,
            inherited: false,
            record,
        }
    }

    /// Calls in the latest window.
    pub(super) fn calls(&self) -> u64 {
        self.window.map_or(0, |window| window.calls)
    }

    /// No window comes after the latest pause.
    pub(super) fn end_pause(&mut self) {
        if let (Some(window), false) = (self.window, self.record.is_null()) {
            // SAFETY: the record is in the mapping.
            unsafe { (*self.record).add_pause(window, self.paused_ns) };
            self.paused_ns = 0;
        }
    }

    fn level(&self) -> Level {
        LEVELS.get(self.level).copied().unwrap_or(LEVELS[0])
    }

    /// Gives whether this is late, and was so often before.
    pub(super) fn open(&mut self, slot: u32, moment: Moment) -> bool {
        let moment = moment.renewed();
        let was_late = self.account(slot, moment);
        if self.store(arch::target(self.of as usize), arch::stub(slot as usize)) {
            self.phase = Phase::Open;
            // What opening took is no part of the window.
            self.since = moment.without_own_work();
        }
        let open_us = self.level().open_us;
        self.edge_ticks = moment.ticks + open_us * moment.ticks_per_us;
        was_late && !self.record.is_null() && {
            // SAFETY: the record is in the mapping.
            let TwinRecord { on_ns, off_ns, unseen_ns, .. } = unsafe { *self.record };
            self.late > FEW_LATE && self.delay(unseen_ns) > (on_ns + off_ns) / LATE_PART
        }
    }

    pub(super) fn close(&mut self, slot: u32, moment: Moment, random: u64) {
        let phase = self.phase;
        let is_closed = self.store(arch::stub(slot as usize), arch::target(self.of as usize));
        let moment = moment.renewed();
        self.account_as(phase, slot, moment);
        if is_closed {
            self.phase = Phase::Closed;
        }
        self.pause(moment, random);
    }

    /// Chooses when the next window is due: after half of the usual pause to one and a half.
    pub(super) fn pause(&mut self, moment: Moment, random: u64) {
        const PARTS: u64 = 1024;
        let Level { open_us, closed } = self.level();
        let pause_ns = open_us * closed * 1000 * (PARTS / 2 + random % PARTS) / PARTS;
        self.pause_ns = pause_ns;
        self.edge_ticks = moment.ticks + self.pause_ns * moment.ticks_per_us / 1000;
    }

    /// Puts the time since the latest edge, and the calls of a window, into the recording. Gives whether
    /// that was a pause that ended too late.
    pub(super) fn account(&mut self, slot: u32, moment: Moment) -> bool {
        self.account_as(self.phase, slot, moment)
    }

    fn account_as(&mut self, phase: Phase, slot: u32, moment: Moment) -> bool {
        let (calls, cost) = take_counts(slot);
        let work = moment.since(self.since);
        self.since = moment;
        self.cpu_ns += work.cpu_ns;
        self.worked_ns += work.time_ns;
        if self.record.is_null() {
            return false;
        }
        let is_late = self.is_late(moment, work);
        // SAFETY: the record is in the mapping, and only who may change entries writes it.
        let record = unsafe { &mut *self.record };
        match phase {
            Phase::Open => {
                // In a window the program gets less done in as much time.
                let cost_ns = self.delay(COLD * cost / 1024 * 1000 / moment.ticks_per_us);
                // As long as nothing passes by, it is hardly called either.
                let busy_ns = work.time_ns.min((self.level().open_us + LATE_US) * 1000);
                let cost_ns = cost_ns.min(busy_ns / 4 * 3);
                let window = Window { open_ns: busy_ns - cost_ns, calls };
                record.add_window(window, self.paused_ns, self.window.replace(window));
                record.on_ns += work.time_ns - busy_ns;
                record.cost_ns += cost_ns;
                self.paused_ns = 0;
            }
            Phase::Closed if is_late => {
                record.unseen_ns += work.cpu_ns;
                self.late += 1;
                return true;
            }
            Phase::Closed => {
                record.off_ns += work.time_ns;
                self.paused_ns += work.time_ns;
            }
            Phase::Ended => {}
        }
        false
    }

    /// Whether a pause of so much work ends too late: by the clock, and also by what has been worked,
    /// since a process that sleeps is not late.
    fn is_late(&self, moment: Moment, work: Work) -> bool {
        let late_ticks = moment.ticks.saturating_sub(self.edge_ticks);
        late_ticks > LATE_US * moment.ticks_per_us
            && self.delay(work.cpu_ns) > self.pause_ns + LATE_US * 1000
    }

    /// The time that CPU time of all threads takes, if as many work beside each other as usual.
    fn delay(&self, cpu_ns: u64) -> u64 {
        if self.cpu_ns <= self.worked_ns {
            return cpu_ns;
        }
        (u128::from(cpu_ns) * u128::from(self.worked_ns) / u128::from(self.cpu_ns)) as u64
    }

    /// Makes the entry lead to `to` instead of to `from`. If it does not lead there, somebody else has
    /// changed it, and it is left alone from now on.
    pub(super) fn store(&mut self, from: usize, to: usize) -> bool {
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
