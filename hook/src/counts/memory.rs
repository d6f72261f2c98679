//! The memory of countdowns, of which only the pages of slots that are called are touched.
//!
//! It is never unmapped, since a signal handler may have switched stacks in the middle of a stub.

use core::cell::Cell;
use core::ptr;
use core::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

use chase_format::layout::PAGE;

use super::{Counts, SlotState};
use crate::abi::{Countdown, NEAR, STUBS};
use crate::arch::NearCountdowns;
use crate::lock::{Fork, Lock};
use crate::node::samples_of;
use crate::readable::can_read;
use crate::signals::SignalsBlocked;
use crate::sys::is_confined;
use crate::{clock, pages, sys};

const SLOTS_PER_PAGE: usize = PAGE / size_of::<SlotState>();
const MANY_PAGES: usize = 128;

/// The states of slots that sampling has looked at. They never move: a handler may add one at any time.
#[repr(C)]
pub(super) struct SlotStates {
    pages: [AtomicPtr<SlotState>; MANY_PAGES],
    count: AtomicUsize,
}

/// Links of the lists that a thread's countdowns are in.
#[repr(C)]
pub(super) struct Links {
    next: Cell<*const Counts>,
    next_free: Cell<*const Counts>,
}

/// The countdowns shared by threads that have none of their own. None is ever above zero: every call is timed.
#[unsafe(link_section = ".bss.large")]
pub(crate) static NO_COUNTS: [Countdown; STUBS] = [const { Countdown::new() }; STUBS];

/// Returns the address of [`NO_COUNTS`], for a thread's words.
pub(crate) fn no_counts() -> *const Countdown {
    NO_COUNTS.as_ptr()
}

/// Keeps timing every call of `slot` where the calling thread has no countdowns of its own, and that of the slot has ended.
pub(crate) fn time_every_call_without_thread(slot: u32) {
    // SAFETY: they are the calling thread's.
    let near = NearCountdowns::own().and_then(|near| unsafe { near.countdown(slot) });
    if let Some(remaining) = near.or(NO_COUNTS.get(slot as usize).map(|slot| &slot.remaining)) {
        remaining.store(-1, Ordering::Relaxed);
    }
}

/// Lists of countdowns, whose memory stays mapped.
struct Lists {
    all: *const Counts,
    /// Those that no thread uses.
    free: *const Counts,
}

static LISTS: Lock<Lists> = Lock::new(Lists { all: ptr::null(), free: ptr::null() });

/// Allocates countdowns for the calling thread; returns `None` if there is no memory. Signals are blocked.
pub(crate) fn allocate() -> Option<&'static Counts> {
    let mut lists = LISTS.hold();
    let mut counts = lists.free;
    // SAFETY: the lock is held; what is in the lists stays mapped.
    unsafe {
        if counts.is_null() {
            counts = sys::map_anonymous(size_of::<Counts>()).cast();
            if counts.is_null() {
                return None;
            }
            (*counts).links.next.set(lists.all);
            lists.all = counts;
        } else {
            lists.free = (*counts).links.next_free.get();
        }
        let near = NearCountdowns::own();
        if let Some(near) = near {
            near.owner().store(counts.cast_mut().cast(), Ordering::Relaxed);
        }
        (*counts).near.set(near);
        (*counts).spent_ticks.set(0);
        // Seeds the generator differently in each thread and each run.
        (*counts).random.set((clock::now() ^ counts as u64) | 1);
        Some(&*counts)
    }
}

/// Takes back the calling thread's countdowns when it doesn't use them any more: none is above zero. Signals are
/// blocked.
pub(crate) fn give_back(counts: &'static Counts) {
    let mut lists = LISTS.hold();
    counts.record.set(ptr::null_mut());
    if let Some(near) = counts.near.take() {
        // SAFETY: they are the calling thread's.
        unsafe { near.owner() }.store(ptr::null_mut(), Ordering::Relaxed);
    }
    for page in &counts.slot_states.pages {
        let page = page.swap(ptr::null_mut(), Ordering::Relaxed);
        if !page.is_null() {
            pages::give_back(page.cast(), PAGE);
        }
    }
    counts.slot_states.count.store(0, Ordering::Relaxed);
    let (start, len) = (ptr::from_ref(counts), size_of_val(&counts.slots));
    // They are not reused if the pages can't be zeroed: memory may be locked, or the call forbidden.
    if sys::advise(start.cast_mut().cast(), len, libc::MADV_DONTNEED).is_ok() {
        counts.links.next_free.set(lists.free);
        lists.free = counts;
    }
}

/// Stores in the recording how many calls of each thread were counted but not credited up to now.
pub(crate) fn store_uncredited() {
    let _signals = SignalsBlocked::new();
    let lists = LISTS.hold();
    let mut at = lists.all;
    while !at.is_null() {
        // SAFETY: what is in the list stays mapped.
        let counts = unsafe { &*at };
        at = counts.links.next.get();
        if !counts.near_countdowns_exist() {
            if counts.may_lack_calls() {
                counts.mark_countdowns_lost();
            }
            continue;
        }
        for state in counts.states().filter(|state| state.block.load(Ordering::Relaxed) > 0) {
            let Some(remaining) = counts.countdown(state.number) else { continue };
            let node = state.node.load(Ordering::Relaxed);
            // SAFETY: the node is one of sampled calls; `adjust` is one word, computed anew each time it is stored.
            unsafe {
                (*samples_of(node)).adjust =
                    state.missing(remaining.load(Ordering::Relaxed), counts.is_framed(state.number))
            };
        }
    }
}

impl Counts {
    /// Marks the record of a thread that ended unnoticed, so that its near countdowns are lost.
    fn mark_countdowns_lost(&self) {
        let record = self.record.get();
        if !record.is_null() {
            // SAFETY: it is in the mapping, and the thread does not write it any more.
            unsafe { (*record).countdowns_lost = 1 };
        }
    }

    /// Ends what [`Counts::pass_calls`] has begun: the next call of each slot takes the slow path. The thread is the calling one.
    pub(crate) fn stop_passing(&self) {
        if let Some(near) = self.near.get() {
            for slot in 0..NEAR as u32 {
                // SAFETY: the thread still exists.
                if let Some(remaining) = unsafe { near.countdown(slot) } {
                    remaining.store(0, Ordering::Relaxed);
                }
            }
        }
        let (start, len) = (ptr::from_ref(self), size_of_val(&self.slots));
        if sys::advise(start.cast_mut().cast(), len, libc::MADV_DONTNEED).is_err() {
            // Memory may be locked, or the call forbidden.
            self.slots.iter().for_each(|slot| slot.remaining.store(0, Ordering::Relaxed));
        }
    }

    /// Whether calls may have been counted but not credited.
    fn may_lack_calls(&self) -> bool {
        self.states()
            .any(|state| state.block.load(Ordering::Relaxed) > 0 && !self.is_framed(state.number))
    }

    /// Whether the near countdowns can be read. A thread may have ended unnoticed, by a system call of its own: then
    /// their memory may be unmapped, or belong to another thread.
    fn near_countdowns_exist(&self) -> bool {
        let Some(near) = self.near.get() else { return true };
        NearCountdowns::own() == Some(near)
            || !is_confined()
                && near.ends().into_iter().all(|end| can_read(end & !(size_of::<u64>() - 1)))
                // SAFETY: the first one can be read.
                && ptr::eq(unsafe { near.owner() }.load(Ordering::Relaxed), self.address())
    }
}

/// Handles the lock in a fork. In the child, [`after_fork_in_child`] is called as well.
pub(crate) fn fork(moment: Fork) {
    LISTS.fork(moment);
}

/// Resets the lists in a fork's child, whose only thread has these countdowns.
pub(crate) fn after_fork_in_child(own: Option<&'static Counts>) {
    *LISTS.hold() = Lists { all: own.map_or(ptr::null(), ptr::from_ref), free: ptr::null() };
    if let Some(own) = own {
        own.links.next.set(ptr::null());
        own.forget();
    }
}

/// Adds the countdowns of a further thread that is to be recorded in a fork's child.
pub(crate) fn add_in_fork_child(own: &'static Counts) {
    let mut lists = LISTS.hold();
    own.links.next.set(lists.all);
    lists.all = own;
    own.forget();
}

impl SlotStates {
    pub(super) fn count(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    pub(super) fn get(&self, place: usize) -> Option<&SlotState> {
        let page = self.pages.get(place / SLOTS_PER_PAGE)?.load(Ordering::Relaxed);
        // SAFETY: a page, once there, holds as many slots, zeroed at first, until the thread ends.
        (!page.is_null()).then(|| unsafe { &*page.add(place % SLOTS_PER_PAGE) })
    }

    /// Adds a state for a slot and returns its one-based index. Signals are blocked.
    pub(super) fn add(&self, slot: u32) -> Option<u16> {
        let place = self.count();
        let page = self.pages.get(place / SLOTS_PER_PAGE)?;
        if page.load(Ordering::Relaxed).is_null() {
            let memory = pages::allocate(PAGE).cast::<SlotState>();
            if memory.is_null() {
                return None;
            }
            page.store(memory, Ordering::Relaxed);
        }
        let memory = page.load(Ordering::Relaxed);
        // SAFETY: the place is in the page, and nobody refers to it yet.
        unsafe { (&raw mut (*memory.add(place % SLOTS_PER_PAGE)).number).write(slot) };
        self.count.store(place + 1, Ordering::Relaxed);
        u16::try_from(place + 1).ok()
    }
}
