//! The countdowns of a thread, and how they change.

mod memory;

use core::cell::{Cell, UnsafeCell};
use core::ptr;
use core::sync::atomic::{AtomicI16, AtomicPtr, AtomicU16, AtomicU32, Ordering, compiler_fence};

use chase_format::layout::{Node, ThreadRecord};
use chase_logic::countdown::{self, until_sample, wrapping_after};

pub(crate) use self::memory::{
    NO_COUNTS, after_fork_in_child, allocate, fork, give_back, no_counts, rejoin, settle_all,
    time_every_call_of_nobody,
};
use crate::abi::{Countdown, HAS_FRAMES, STUBS};
use crate::arch::NearCountdowns;
use crate::for_tests::FIRST_LOOK;
use crate::node::samples_of;
use crate::signals::SignalsBlocked;
use chase_logic::moments::Moments;
use chase_logic::suspects::Suspects;

/// Bytes that `thread` keeps here, for a fork's child.
pub(crate) const KEPT: usize = 2176;

/// The countdowns of one thread, and what is known of those that were looked at.
#[repr(C)]
pub(crate) struct Counts {
    /// By slot. The first ones' countdowns are elsewhere where they can be near.
    pub(crate) slots: [Countdown; STUBS],
    // What each sample needs, in two cache lines.
    pub(crate) near: Cell<Option<NearCountdowns>>,
    /// What a sample is about to change, and where on the stack its call is made; 0 if none is.
    pub(crate) change: Cell<Change>,
    pub(crate) change_sp: Cell<usize>,
    /// SlotState of a call whose countdown is at zero and for which nothing was changed yet, and where on the
    /// stack that call is made; 0 if there is none.
    pub(crate) due_slot: Cell<u32>,
    pub(crate) due_sp: Cell<usize>,
    /// State of a xorshift generator, never 0.
    pub(crate) random: Cell<u64>,
    /// By how much the recorded duration of a sample is longer than that of another timed call, in 1/1024 ticks.
    pub(crate) excess: Cell<u64>,
    /// Probes: how many empty samples were timed, and the mean of what was recorded of them, in 1/1024 ticks; 0: as at
    /// the start.
    pub(crate) probes: Cell<u32>,
    pub(crate) probed: Cell<u64>,
    /// Of the samples since the latest choice: those whose cost was measured, and the sum of these costs, in ticks.
    pub(crate) samples: Cell<u32>,
    pub(crate) samples_ticks: Cell<u64>,
    slot_states: memory::SlotStates,
    /// What the timing of short calls has cost, about.
    pub(crate) spent_ticks: Cell<u64>,
    /// Preemptions of the thread when it was last asked for them.
    pub(crate) preemptions: Cell<u64>,
    links: memory::Links,
    /// The record of the thread that has, or had, these, as long as that has not credited all; or null.
    pub(crate) record: Cell<*mut ThreadRecord>,
    /// What a fork's child needs of the thread.
    pub(crate) kept: UnsafeCell<[u64; KEPT / size_of::<u64>()]>,
}

/// What is known of a slot in one thread, from the first look at how it is used.
#[repr(C, align(64))]
pub(crate) struct SlotState {
    pub(crate) number: u32,
    /// Calls in the block that the next sample stands for; 0 while every call is timed.
    pub(crate) block: AtomicU32,
    /// Where in it the sample is, from 1.
    pub(crate) place: AtomicU32,
    /// Samples since the length of blocks was chosen.
    pub(crate) samples: Cell<u32>,
    /// Node of the latest sample, or the one that was made ready for the first.
    pub(crate) node: AtomicPtr<Node>,
    /// Of the durations of calls, each sample with its weight.
    pub(crate) moments: Cell<Moments>,
    // So far what each sample needs, in a cache line.
    /// How often the length of blocks was chosen.
    pub(crate) choices: Cell<u32>,
    /// Calls from the latest look to the next.
    pub(crate) interval: Cell<u32>,
    pub(crate) since_ticks: Cell<u64>,
    pub(crate) suspects: Cell<Suspects>,
}

/// What the next values of a slot are after a sample.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Change {
    pub(crate) node: *mut Node,
    /// How many calls the node has then; 0: what it has.
    pub(crate) calls: u64,
    pub(crate) slot: u32,
    pub(crate) block: u32,
    pub(crate) place: u32,
    pub(crate) left: i16,
    /// Whether calls that are only counted get frames, and are credited as they are made.
    pub(crate) framed: bool,
}

impl SlotState {
    /// Calls made and not credited, at this countdown; below zero if it is the other way round.
    pub(crate) fn missing(&self, left: i16, framed: bool) -> i32 {
        countdown::uncredited(self.place.load(Ordering::Relaxed), left, framed)
    }

    /// Makes the call under way the only one of its block, as the first of `node` that is only counted. False if other
    /// calls of the slot are: a signal handler has begun it meanwhile, or has interrupted who does.
    pub(crate) fn claim(&self, node: *mut Node) -> bool {
        // Whoever sees a block expects a node.
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
    /// The countdown of `slot`. Its thread is there.
    #[inline]
    pub(crate) fn left(&self, slot: u32) -> Option<&AtomicI16> {
        self.near
            .get()
            // SAFETY: the thread is there.
            .and_then(|near| unsafe { near.countdown(slot) })
            .or_else(|| self.slots.get(slot as usize).map(|slot| &slot.left))
    }

    fn place(&self, slot: u32) -> Option<&AtomicU16> {
        self.slots.get(slot as usize).map(|slot| &slot.place)
    }

    /// Credits a sample's `calls` and makes the rest of its change. A handler in between that calls
    /// the same slot finds its countdown below zero, and changes none of this, unless calls get frames, which
    /// are credited as they are made: then `calls` is 0. One that jumps out of it leaves it to
    /// `Thread::finish_change`.
    pub(crate) fn commit(&self, mut change: Change, calls: u32, sp: usize) {
        change.expect(calls);
        let outer = self.begin_change(change, sp);
        self.apply(change);
        self.end_change(outer);
    }

    /// As [`Counts::commit`], for a change after which blocks are as long as before, with frames or without.
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
        if let Some(left) = self.left(change.slot) {
            left.store(change.left, Ordering::Relaxed);
        }
        self.end_change(outer);
    }

    /// A handler has jumped out of what was to be a sample, and so prevented that call: those before it, which
    /// got no frames, are credited, and all that follow are timed, at this countdown.
    pub(crate) fn credit_prevented(&self, state: &SlotState, left: i16, sp: usize) {
        let (node, place) =
            (state.node.load(Ordering::Relaxed), state.place.load(Ordering::Relaxed));
        let slot = state.number;
        let change = Change { node, slot, block: 0, place: 0, calls: 0, left, framed: false };
        self.commit(change, place.saturating_sub(1), sp);
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
    pub(crate) fn set_due(&self, slot: u32, sp: usize) {
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

    pub(crate) fn apply(&self, change: Change) {
        if let (Some(state), Some(left)) = (self.state_of(change.slot), self.left(change.slot)) {
            change.credit();
            state.node.store(change.node, Ordering::Relaxed);
            state.place.store(change.place, Ordering::Relaxed);
            state.block.store(change.block, Ordering::Relaxed);
            self.set_framed(change.slot, change.framed);
            left.store(change.left, Ordering::Relaxed);
        }
    }

    /// Makes the last of the next `calls` a sample.
    pub(crate) fn set(&self, slot: u32, calls: u32, framed: bool) {
        if let Some(left) = self.left(slot) {
            left.store(until_sample(calls, framed), Ordering::Relaxed);
        }
    }

    pub(crate) fn time_every_call(&self, slot: u32) {
        if let Some(left) = self.left(slot) {
            left.store(-1, Ordering::Relaxed);
        }
    }

    pub(crate) fn look_after(&self, slot: u32, calls: u32) {
        if let Some(left) = self.left(slot) {
            left.store(wrapping_after(calls), Ordering::Relaxed);
        }
    }

    /// A number from 1 to `most`, each as likely.
    pub(crate) fn random_up_to(&self, most: u32) -> u32 {
        let (state, number) = countdown::random_up_to(self.random.get(), most);
        self.random.set(state);
        number
    }

    pub(crate) fn state_of(&self, slot: u32) -> Option<&SlotState> {
        let place = self.place(slot)?.load(Ordering::Relaxed) & !HAS_FRAMES;
        self.slot_states.get(usize::from(place).checked_sub(1)?)
    }

    /// The state of a slot whose calls are not all timed.
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

    /// The state of a slot, made now if there was none; `None` if there is no room.
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

    /// Calls, at most, that were only counted and are not credited, or will not be.
    pub(crate) fn uncredited(&self) -> u64 {
        let sampled = self.states().filter(|state| state.block.load(Ordering::Relaxed) > 0);
        let missing = sampled.filter_map(|state| {
            let left = self.left(state.number)?.load(Ordering::Relaxed);
            Some(state.missing(left, self.is_framed(state.number)).max(0) as u64)
        });
        missing.sum()
    }

    /// The calling thread's countdowns, for its words.
    pub(crate) fn as_word(&self) -> *const Countdown {
        self.slots.as_ptr()
    }

    /// Credits what was only counted, and times every call until slots are looked at again.
    pub(crate) fn stop(&self) {
        let _signals = SignalsBlocked::new();
        for state in self.states().filter(|state| state.block.load(Ordering::Relaxed) > 0) {
            let Some(left) = self.left(state.number) else { continue };
            let left = left.swap(wrapping_after(FIRST_LOOK), Ordering::Relaxed);
            state.block.store(0, Ordering::Relaxed);
            let missing = state.missing(left, self.is_framed(state.number));
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

    /// In a fork's child: what was counted is its parent's to tell.
    pub(crate) fn forget(&self) {
        self.change_sp.set(0);
        self.due_sp.set(0);
        self.spent_ticks.set(0);
        self.samples.set(0);
        self.samples_ticks.set(0);
        for state in self.states() {
            state.block.store(0, Ordering::Relaxed);
            state.node.store(ptr::null_mut(), Ordering::Relaxed);
            self.set_framed(state.number, false);
            self.look_after(state.number, FIRST_LOOK);
        }
    }
}
