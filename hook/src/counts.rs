//! The countdowns of a thread, and how they are changed.

mod memory;

use core::cell::{Cell, UnsafeCell};
use core::ptr;
use core::sync::atomic::{AtomicI16, AtomicPtr, AtomicU16, AtomicU32, Ordering, compiler_fence};

use chase_format::layout::{Node, ThreadRecord};
use chase_logic::countdown::{self, until_sample, wrapping_after};

pub(crate) use self::memory::{
    NO_COUNTS, add_in_fork_child, after_fork_in_child, allocate, fork, give_back, no_counts,
    store_uncredited, time_every_call_without_thread,
};
use crate::abi::{Countdown, HAS_FRAMES, STUBS};
use crate::arch::NearCountdowns;
use crate::for_tests::FIRST_LOOK;
use crate::node::samples_of;
use crate::signals::SignalsBlocked;
use chase_logic::moments::Moments;
use chase_logic::suspects::Suspects;

/// Size in bytes of the area in which `thread` keeps its data for a fork's child.
pub(crate) const KEPT: usize = 2176;

/// The countdowns of one thread, and the state of the slots that sampling has looked at.
#[repr(C)]
pub(crate) struct Counts {
    /// By slot. The countdowns of the first slots are near the thread's words instead, where possible.
    pub(crate) slots: [Countdown; STUBS],
    // The fields that each sample uses, in two cache lines.
    pub(crate) near: Cell<Option<NearCountdowns>>,
    /// The change that a sample is making, and the stack address of its call; 0 if there is none.
    pub(crate) change: Cell<Change>,
    pub(crate) change_sp: Cell<usize>,
    /// The slot of a call whose countdown has ended and for which nothing has been changed yet, and the stack address
    /// of the call; 0 if there is none.
    pub(crate) announced_slot: Cell<u32>,
    pub(crate) announced_sp: Cell<usize>,
    /// State of a xorshift generator, never 0.
    pub(crate) random: Cell<u64>,
    /// How much longer the recorded duration of a sample is than that of another timed call, in 1/1024 ticks.
    pub(crate) excess: Cell<u64>,
    /// Probes: how many empty samples were timed, and the mean of their recorded durations in 1/1024 ticks; 0 as long
    /// as the values from the start are used.
    pub(crate) probes: Cell<u32>,
    pub(crate) probed: Cell<u64>,
    /// Samples since the latest choice of a block's length whose cost was measured, and the sum of these costs, in
    /// ticks.
    pub(crate) samples: Cell<u32>,
    pub(crate) samples_ticks: Cell<u64>,
    slot_states: memory::SlotStates,
    /// Approximately how long the timing of short calls has taken.
    pub(crate) spent_ticks: Cell<u64>,
    /// The number of the thread's preemptions when it was last read.
    pub(crate) preemptions: Cell<u64>,
    links: memory::Links,
    /// The record of the thread that uses these, or that used them and has not had all of its calls credited; or
    /// null.
    pub(crate) record: Cell<*mut ThreadRecord>,
    /// What a fork's child needs of the thread.
    pub(crate) kept: UnsafeCell<[u64; KEPT / size_of::<u64>()]>,
}

/// What is known of a slot in one thread since sampling first looked at it.
#[repr(C, align(64))]
pub(crate) struct SlotState {
    pub(crate) number: u32,
    /// The number of calls in the block that the next sample stands for; 0 while every call is timed.
    pub(crate) block: AtomicU32,
    /// The position of the sample in the block, from 1.
    pub(crate) place: AtomicU32,
    /// Samples since the length of blocks was last chosen.
    pub(crate) samples: Cell<u32>,
    /// The node of the latest sample, or the one prepared for the first.
    pub(crate) node: AtomicPtr<Node>,
    /// Moments of the calls' durations, each sample with its weight.
    pub(crate) moments: Cell<Moments>,
    // Each sample uses the fields up to here, in one cache line.
    /// How often the length of blocks was chosen.
    pub(crate) choices: Cell<u32>,
    /// The number of calls from the latest review to the next.
    pub(crate) interval: Cell<u32>,
    /// When the latest review was.
    pub(crate) since_ticks: Cell<u64>,
    pub(crate) suspects: Cell<Suspects>,
}

/// The next values of a slot's state after a sample.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Change {
    pub(crate) node: *mut Node,
    /// The node's number of calls after the change; 0: it doesn't change.
    pub(crate) calls: u64,
    pub(crate) slot: u32,
    pub(crate) block: u32,
    pub(crate) place: u32,
    pub(crate) remaining: i16,
    /// Whether calls that are only counted get frames, and are credited as they are made.
    pub(crate) framed: bool,
}

impl SlotState {
    /// Returns the number of calls made and not credited, given the countdown's value; negative if more were credited
    /// than made.
    pub(crate) fn missing(&self, remaining: i16, framed: bool) -> i32 {
        countdown::uncredited(self.place.load(Ordering::Relaxed), remaining, framed)
    }

    /// Makes the call under way the only one of its block, as the first of `node` that is only counted. Returns false
    /// if the slot has a block already: a signal handler has made it meanwhile, or has interrupted its making.
    pub(crate) fn claim(&self, node: *mut Node) -> bool {
        // The node is stored before the block, since code that sees a block expects a node.
        if self.node.load(Ordering::Relaxed).is_null() {
            self.node.store(node, Ordering::Relaxed);
        }
        self.block.compare_exchange(0, 1, Ordering::Relaxed, Ordering::Relaxed).is_ok()
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

impl Counts {
    /// Returns the countdown of `slot`. The thread still exists.
    #[inline]
    pub(crate) fn countdown(&self, slot: u32) -> Option<&AtomicI16> {
        self.near
            .get()
            // SAFETY: the thread still exists.
            .and_then(|near| unsafe { near.countdown(slot) })
            .or_else(|| self.slots.get(slot as usize).map(|slot| &slot.remaining))
    }

    fn place(&self, slot: u32) -> Option<&AtomicU16> {
        self.slots.get(slot as usize).map(|slot| &slot.place)
    }

    /// Credits a sample's `calls` and makes the rest of its change. If a signal handler comes in between and calls
    /// the same slot, it finds the countdown below zero and changes none of this. (Where calls get frames they are
    /// credited as they are made, and `calls` is 0.) If it jumps out, `Thread::finish_change` completes the change.
    pub(crate) fn commit(&self, mut change: Change, calls: u32, sp: usize) {
        change.expect(calls);
        let outer = self.begin_change(change, sp);
        self.apply(change);
        self.end_change(outer);
    }

    /// Like [`Counts::commit`], for a change that leaves the length of blocks, and whether calls get frames, as they
    /// are.
    #[inline(always)]
    pub(crate) fn commit_same_block(
        &self,
        mut change: Change,
        state: &SlotState,
        calls: u32,
        sp: usize,
    ) {
        change.expect(calls);
        let outer = self.begin_change(change, sp);
        change.credit();
        state.node.store(change.node, Ordering::Relaxed);
        state.place.store(change.place, Ordering::Relaxed);
        if let Some(remaining) = self.countdown(change.slot) {
            remaining.store(change.remaining, Ordering::Relaxed);
        }
        self.end_change(outer);
    }

    /// After a handler has jumped out of what was to be a sample, and so prevented that call: credits the calls
    /// before it that got no frames, and times all that follow. The countdown becomes `remaining`.
    pub(crate) fn credit_prevented(&self, state: &SlotState, remaining: i16, sp: usize) {
        let (node, place) =
            (state.node.load(Ordering::Relaxed), state.place.load(Ordering::Relaxed));
        let slot = state.number;
        let change = Change { node, slot, block: 0, place: 0, calls: 0, remaining, framed: false };
        self.commit(change, place.saturating_sub(1), sp);
    }

    /// Announces a change, in case a handler jumps out of it. Returns the change that the calling handler has
    /// interrupted, if any, since that handler may jump as well once it is done.
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
        self.announced_sp.set(0);
        outer
    }

    #[inline]
    pub(crate) fn set_announced(&self, slot: u32, sp: usize) {
        self.announced_sp.set(0);
        compiler_fence(Ordering::SeqCst);
        self.announced_slot.set(slot);
        compiler_fence(Ordering::SeqCst);
        self.announced_sp.set(sp);
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

    pub(crate) fn apply(&self, change: Change) {
        if let (Some(state), Some(remaining)) =
            (self.state_of(change.slot), self.countdown(change.slot))
        {
            change.credit();
            state.node.store(change.node, Ordering::Relaxed);
            state.place.store(change.place, Ordering::Relaxed);
            state.block.store(change.block, Ordering::Relaxed);
            self.set_framed(change.slot, change.framed);
            remaining.store(change.remaining, Ordering::Relaxed);
        }
    }

    /// Makes the last of the next `calls` a sample.
    pub(crate) fn set_until_sample(&self, slot: u32, calls: u32, framed: bool) {
        self.set_countdown(slot, until_sample(calls, framed));
    }

    pub(crate) fn time_every_call(&self, slot: u32) {
        self.set_countdown(slot, -1);
    }

    /// Lets as many calls of `slot` as possible pass uncounted, of a thread that is not recorded.
    pub(crate) fn pass_calls(&self, slot: u32) {
        self.set_countdown(slot, i16::MAX);
    }

    pub(crate) fn review_after(&self, slot: u32, calls: u32) {
        self.set_countdown(slot, wrapping_after(calls));
    }

    fn set_countdown(&self, slot: u32, value: i16) {
        if let Some(remaining) = self.countdown(slot) {
            remaining.store(value, Ordering::Relaxed);
        }
    }

    /// Returns a uniformly distributed random number from 1 to `most`.
    pub(crate) fn random_up_to(&self, most: u32) -> u32 {
        let (state, number) = countdown::random_up_to(self.random.get(), most);
        self.random.set(state);
        number
    }

    pub(crate) fn state_of(&self, slot: u32) -> Option<&SlotState> {
        let place = self.place(slot)?.load(Ordering::Relaxed) & !HAS_FRAMES;
        self.slot_states.get(usize::from(place).checked_sub(1)?)
    }

    /// Returns the state of a slot if not all of its calls are timed.
    pub(crate) fn sampled(&self, slot: u32) -> Option<&SlotState> {
        self.state_of(slot).filter(|state| state.block.load(Ordering::Relaxed) > 0)
    }

    /// Whether calls of a slot that are not timed get frames.
    pub(crate) fn is_framed(&self, slot: u32) -> bool {
        self.place(slot).is_some_and(|it| it.load(Ordering::Relaxed) & HAS_FRAMES != 0)
    }

    pub(crate) fn set_framed(&self, slot: u32, framed: bool) {
        let Some(place) = self.place(slot) else { return };
        let place_alone = place.load(Ordering::Relaxed) & !HAS_FRAMES;
        place.store(place_alone | if framed { HAS_FRAMES } else { 0 }, Ordering::Relaxed);
    }

    /// Returns the state of a slot, which it creates if there is none; `None` if there is no room.
    pub(crate) fn make_state(&self, slot: u32) -> Option<&SlotState> {
        if let state @ Some(_) = self.state_of(slot) {
            return state;
        }
        let _signals = SignalsBlocked::new();
        let place = self.place(slot)?;
        if place.load(Ordering::Relaxed) == 0 {
            place.store(self.slot_states.add(slot)?, Ordering::Relaxed);
        }
        self.state_of(slot)
    }

    pub(crate) fn states(&self) -> impl Iterator<Item = &SlotState> {
        (0..self.slot_states.count()).map_while(|place| self.slot_states.get(place))
    }

    /// Returns an upper bound of the calls that were only counted and not credited yet, or never will be.
    pub(crate) fn uncredited(&self) -> u64 {
        let sampled = self.states().filter(|state| state.block.load(Ordering::Relaxed) > 0);
        let missing = sampled.filter_map(|state| {
            let remaining = self.countdown(state.number)?.load(Ordering::Relaxed);
            Some(state.missing(remaining, self.is_framed(state.number)).max(0) as u64)
        });
        missing.sum()
    }

    /// Returns the address of the countdowns, for the thread's words.
    pub(crate) fn address(&self) -> *const Countdown {
        self.slots.as_ptr()
    }

    /// Credits the calls that were only counted, and times every call until the slots' next review.
    pub(crate) fn stop(&self) {
        let _signals = SignalsBlocked::new();
        for state in self.states().filter(|state| state.block.load(Ordering::Relaxed) > 0) {
            let Some(remaining) = self.countdown(state.number) else { continue };
            let remaining = remaining.swap(wrapping_after(FIRST_LOOK), Ordering::Relaxed);
            state.block.store(0, Ordering::Relaxed);
            let missing = state.missing(remaining, self.is_framed(state.number));
            state.place.store(0, Ordering::Relaxed);
            self.set_framed(state.number, false);
            let node = state.node.load(Ordering::Relaxed);
            // SAFETY: the node is this thread's, and of sampled calls.
            unsafe {
                (*node).calls = (*node).calls.wrapping_add_signed(i64::from(missing));
                (*samples_of(node)).adjust = 0;
            }
        }
    }

    /// Discards the state in a fork's child: its parent records what was counted.
    pub(crate) fn forget(&self) {
        self.change_sp.set(0);
        self.announced_sp.set(0);
        self.spent_ticks.set(0);
        self.samples.set(0);
        self.samples_ticks.set(0);
        for state in self.states() {
            state.block.store(0, Ordering::Relaxed);
            state.node.store(ptr::null_mut(), Ordering::Relaxed);
            self.set_framed(state.number, false);
            self.review_after(state.number, FIRST_LOOK);
        }
    }
}
