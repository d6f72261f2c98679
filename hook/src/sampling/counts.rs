//! The countdowns of a thread, and how they change.

use core::cell::Cell;
use core::mem::offset_of;
use core::ptr;
use core::sync::atomic::{AtomicI16, AtomicPtr, AtomicU16, AtomicU32, Ordering, compiler_fence};

use chase_format::layout::Node;

use super::policy::Moments;
use super::record::Suspects;
use super::{FIRST_LOOK, LONGEST, memory};
use crate::arch::{NearCountdowns, STUBS};
use crate::signals::SignalsBlocked;
use crate::thread::Kept;

/// Bit in [`Countdown::place`]: calls that are not timed get frames. The call path tests it as the sign.
pub(super) const FRAMES: u16 = 1 << 15;

/// What the call path needs to know of a slot, in one place.
#[repr(C)]
pub(super) struct Countdown {
    /// The stubs count it down, and know where it is.
    pub(super) left: AtomicI16,
    /// Place among the known ones plus 1, or 0; and [`FRAMES`].
    place: AtomicU16,
}

impl Countdown {
    pub(super) const fn new() -> Self {
        Self { left: AtomicI16::new(0), place: AtomicU16::new(0) }
    }
}

/// Where the place is behind a slot's countdown.
pub(crate) const PLACE: usize = offset_of!(Countdown, place);
/// Bytes of a slot's countdown, and the stubs know that too.
pub(crate) const COUNTDOWN: usize = size_of::<Countdown>();

/// The countdowns of one thread, and what is known of those that were looked at.
#[repr(C)]
pub(crate) struct Counts {
    /// By slot. The first ones' countdowns are elsewhere where they can be near.
    pub(super) slots: [Countdown; STUBS],
    // What each sample needs, in two cache lines.
    pub(super) near: Cell<Option<NearCountdowns>>,
    /// What a sample is about to change, and where on the stack its call is made; 0 if none is.
    pub(super) change: Cell<Change>,
    pub(super) change_sp: Cell<usize>,
    /// Slot of a call whose countdown is at zero and for which nothing was changed yet, and where on the
    /// stack that call is made; 0 if there is none.
    pub(super) due_slot: Cell<u32>,
    pub(super) due_sp: Cell<usize>,
    /// State of a xorshift generator, never 0.
    pub(super) random: Cell<u64>,
    /// What is recorded of a sample beyond what would be of another timed call, in 1/1024 ticks.
    pub(super) excess: Cell<u64>,
    /// How often it was asked what is recorded of an empty sample, and the mean of the answers, in 1/1024 ticks; 0: as
    /// at the start.
    pub(super) probes: Cell<u32>,
    pub(super) probed: Cell<u64>,
    /// Samples since the latest choice that were measured what they cost, and that, in ticks.
    pub(super) samples: Cell<u32>,
    pub(super) samples_ticks: Cell<u64>,
    pub(super) known: memory::Known,
    /// What the timing of short calls has cost, about.
    pub(super) spent_ticks: Cell<u64>,
    /// Preemptions of the thread when it was last asked for them.
    pub(super) preemptions: Cell<u64>,
    /// When it was last looked whether the budget is kept.
    pub(super) checked_ticks: Cell<u64>,
    /// CPU time of the thread then.
    pub(super) checked_cpu_ns: Cell<u64>,
    /// How often, one after the other, it was not.
    pub(super) too_much: Cell<u32>,
    /// What [`crate::windows::changes`] was then.
    pub(super) changes: Cell<u32>,
    pub(super) links: memory::Links,
    /// What a fork's child needs of the thread.
    pub(crate) kept: Kept,
}

/// A slot of one thread that was looked at.
#[repr(C, align(64))]
pub(super) struct Slot {
    pub(super) number: u32,
    /// Calls in the block that the next sample stands for; 0 while every call is timed.
    pub(super) block: AtomicU32,
    /// Where in it the sample is, from 1.
    pub(super) place: AtomicU32,
    /// Samples since the length of blocks was chosen.
    pub(super) samples: Cell<u32>,
    /// Node of the latest sample, or the one that was made ready for the first.
    pub(super) node: AtomicPtr<Node>,
    /// Of the durations of calls, each sample with its weight.
    pub(super) moments: Cell<Moments>,
    // So far what each sample needs, in a cache line.
    /// How often it was chosen again.
    pub(super) choices: Cell<u32>,
    /// Calls from the latest look to the next.
    pub(super) interval: Cell<u32>,
    pub(super) since_ticks: Cell<u64>,
    pub(super) suspects: Cell<Suspects>,
    /// Since it was last looked whether the budget is kept: how often its calls took the slow path, and
    /// what they cost, in 1/1024 ticks.
    pub(super) visits: Cell<u32>,
    /// How many calls that was.
    pub(super) calls: Cell<u32>,
    /// How often, one after the other, they were many.
    pub(super) steady: Cell<u32>,
    pub(super) cost: Cell<u64>,
    /// What they cost in the time before that, and what of the cost seems to last.
    pub(super) earlier_cost: Cell<u64>,
    pub(super) lasting_cost: Cell<u64>,
}

/// What the next values of a slot are after a sample.
#[derive(Clone, Copy)]
#[repr(C)]
pub(super) struct Change {
    pub(super) node: *mut Node,
    /// How many calls the node has then; 0: what it has.
    pub(super) calls: u64,
    pub(super) slot: u32,
    pub(super) block: u32,
    pub(super) place: u32,
    pub(super) left: i16,
    /// Whether calls that are only counted get frames, and are credited as they are made.
    pub(super) framed: bool,
}

impl Slot {
    /// Calls made and not credited, at this countdown; below zero if it is the other way round.
    pub(super) fn missing(&self, left: i16, framed: bool) -> i32 {
        if framed {
            return 0;
        }
        self.place.load(Ordering::Relaxed) as i32 - i32::from(left.max(0))
    }
}

impl Change {
    fn expect(&mut self, calls: u32) {
        if calls > 0 {
            // SAFETY: the node is this thread's.
            self.calls = unsafe { (*self.node).calls } + u64::from(calls);
        }
    }

    fn credit(&self) {
        if self.calls > 0 {
            // SAFETY: the node is this thread's.
            unsafe { (*self.node).calls = self.calls };
        }
    }
}

/// The countdown from which `calls` are timed until it wraps round.
pub(super) fn after(calls: u32) -> i16 {
    i16::MIN + calls.clamp(1, LONGEST) as i16 - 1
}

/// The countdown by which the last of as many calls is the next sample: that of calls which get frames is below
/// zero, so that stubs lead to the call path.
pub(super) fn until_sample(calls: u32, framed: bool) -> i16 {
    if framed { after(calls) } else { calls.min(LONGEST) as i16 }
}

impl Counts {
    /// The countdown of `slot`. Its thread is there.
    #[inline]
    pub(super) fn left(&self, slot: u32) -> Option<&AtomicI16> {
        self.near
            .get()
            // SAFETY: the thread is there.
            .and_then(|near| unsafe { near.of(slot) })
            .or_else(|| self.slots.get(slot as usize).map(|slot| &slot.left))
    }

    fn place(&self, slot: u32) -> Option<&AtomicU16> {
        self.slots.get(slot as usize).map(|slot| &slot.place)
    }

    /// Credits a sample's `calls` and makes the rest of its change. A handler in between that calls
    /// the same slot finds its countdown below zero, and changes none of this, unless calls get frames, which
    /// are credited as they are made: then `calls` is 0. One that jumps out of it leaves it to
    /// `Thread::finish_change`.
    pub(super) fn make(&self, mut change: Change, calls: u32, sp: usize) {
        change.expect(calls);
        let outer = self.begin_change(change, sp);
        self.apply(change);
        self.end_change(outer);
    }

    /// The same for a change after which blocks are as long as before, with frames or without.
    #[inline(always)]
    pub(super) fn make_alike(&self, mut change: Change, known: &Slot, calls: u32, sp: usize) {
        change.expect(calls);
        let outer = self.begin_change(change, sp);
        change.credit();
        known.node.store(change.node, Ordering::Relaxed);
        known.place.store(change.place, Ordering::Relaxed);
        if let Some(left) = self.left(change.slot) {
            left.store(change.left, Ordering::Relaxed);
        }
        self.end_change(outer);
    }

    /// A handler has jumped out of what was to be a sample, and so prevented that call: those before it, which
    /// got no frames, are credited, and all that follow are timed, at this countdown.
    pub(super) fn credit_prevented(&self, known: &Slot, left: i16, sp: usize) {
        let (node, place) =
            (known.node.load(Ordering::Relaxed), known.place.load(Ordering::Relaxed));
        let slot = known.number;
        let change = Change { node, slot, block: 0, place: 0, calls: 0, left, framed: false };
        self.make(change, place - 1, sp);
    }

    /// Notes a change for who jumps out of it. Gives the one that a handler has interrupted to call this,
    /// if any: the handler may jump too, once it is done.
    #[inline]
    fn begin_change(&self, change: Change, sp: usize) -> Option<(Change, usize)> {
        let outer_sp = self.change_sp.get();
        let outer = (outer_sp != 0).then(|| (self.change.get(), outer_sp));
        self.change_sp.set(0);
        compiler_fence(Ordering::SeqCst);
        self.change.set(change);
        compiler_fence(Ordering::SeqCst);
        self.change_sp.set(sp);
        compiler_fence(Ordering::SeqCst);
        self.due_sp.set(0);
        outer
    }

    #[inline]
    pub(super) fn set_due(&self, slot: u32, sp: usize) {
        self.due_sp.set(0);
        compiler_fence(Ordering::SeqCst);
        self.due_slot.set(slot);
        compiler_fence(Ordering::SeqCst);
        self.due_sp.set(sp);
        compiler_fence(Ordering::SeqCst);
    }

    #[inline]
    fn end_change(&self, outer: Option<(Change, usize)>) {
        compiler_fence(Ordering::SeqCst);
        self.change_sp.set(0);
        if let Some((change, sp)) = outer {
            compiler_fence(Ordering::SeqCst);
            self.change.set(change);
            compiler_fence(Ordering::SeqCst);
            self.change_sp.set(sp);
        }
    }

    pub(super) fn apply(&self, change: Change) {
        if let (Some(known), Some(left)) = (self.known(change.slot), self.left(change.slot)) {
            change.credit();
            known.node.store(change.node, Ordering::Relaxed);
            known.place.store(change.place, Ordering::Relaxed);
            known.block.store(change.block, Ordering::Relaxed);
            self.set_framed(change.slot, change.framed);
            left.store(change.left, Ordering::Relaxed);
        }
    }

    /// Makes the last of the next `calls` a sample.
    pub(super) fn set(&self, slot: u32, calls: u32, framed: bool) {
        if let Some(left) = self.left(slot) {
            left.store(until_sample(calls, framed), Ordering::Relaxed);
        }
    }

    pub(super) fn time_every_call(&self, slot: u32) {
        if let Some(left) = self.left(slot) {
            left.store(-1, Ordering::Relaxed);
        }
    }

    pub(super) fn look_after(&self, slot: u32, calls: u32) {
        if let Some(left) = self.left(slot) {
            left.store(after(calls), Ordering::Relaxed);
        }
    }

    /// A number from 1 to `most`, each as likely (Marsaglia's xorshift, scaled as Lemire does).
    pub(super) fn random_up_to(&self, most: u32) -> u32 {
        let mut x = self.random.get();
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        self.random.set(x);
        (((x >> 32) * u64::from(most)) >> 32) as u32 + 1
    }

    pub(super) fn known(&self, slot: u32) -> Option<&Slot> {
        let place = self.place(slot)?.load(Ordering::Relaxed) & !FRAMES;
        self.known.get(usize::from(place).checked_sub(1)?)
    }

    /// What is known of a slot whose calls are not all timed.
    pub(super) fn sampled(&self, slot: u32) -> Option<&Slot> {
        self.known(slot).filter(|known| known.block.load(Ordering::Relaxed) > 0)
    }

    /// Whether calls of a slot that are not timed get frames.
    pub(super) fn is_framed(&self, slot: u32) -> bool {
        self.place(slot).is_some_and(|it| it.load(Ordering::Relaxed) & FRAMES != 0)
    }

    pub(super) fn set_framed(&self, slot: u32, framed: bool) {
        let Some(place) = self.place(slot) else { return };
        let place_alone = place.load(Ordering::Relaxed) & !FRAMES;
        place.store(place_alone | if framed { FRAMES } else { 0 }, Ordering::Relaxed);
    }

    /// What is known of a slot, noted now if there was nothing; `None` if there is no room.
    pub(super) fn know(&self, slot: u32) -> Option<&Slot> {
        if let known @ Some(_) = self.known(slot) {
            return known;
        }
        let _signals = SignalsBlocked::new();
        let place = self.place(slot)?;
        if place.load(Ordering::Relaxed) == 0 {
            place.store(self.known.add(slot)?, Ordering::Relaxed);
        }
        self.known(slot)
    }

    pub(super) fn all_known(&self) -> impl Iterator<Item = &Slot> {
        (0..self.known.count()).map_while(|place| self.known.get(place))
    }

    /// Calls, at most, that were only counted and are not credited, or will not be.
    pub(crate) fn uncredited(&self) -> u64 {
        let sampled = self.all_known().filter(|known| known.block.load(Ordering::Relaxed) > 0);
        let missing = sampled.filter_map(|known| {
            let left = self.left(known.number)?.load(Ordering::Relaxed);
            Some(known.missing(left, self.is_framed(known.number)).max(0) as u64)
        });
        missing.sum()
    }

    /// In a fork's child: what was counted is its parent's to tell.
    pub(crate) fn forget(&self) {
        self.change_sp.set(0);
        self.due_sp.set(0);
        self.spent_ticks.set(0);
        self.samples.set(0);
        self.samples_ticks.set(0);
        self.checked_ticks.set(0);
        for known in self.all_known() {
            known.block.store(0, Ordering::Relaxed);
            known.node.store(ptr::null_mut(), Ordering::Relaxed);
            known.steady.set(0);
            self.set_framed(known.number, false);
            self.look_after(known.number, FIRST_LOOK);
        }
    }
}
