//! Events: single calls, recorded with their times; by default those that took long.
//!
//! A thread has chunks of events in the recording, each as large as all earlier ones together. When there is no room
//! for another, it starts again with the first chunk, unless the first events are to be kept. Whether a call becomes
//! an event is decided at its end; long calls leave the fast half of the call path anyway.

use core::cell::Cell;
use core::mem::offset_of;
use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering, compiler_fence};

use chase_format::layout::{
    ChunkKind, EVENT_CALL, EVENT_MARK, EventRecord, EventsHead, Node, PAGE,
};
use chase_format::writer::records_per_chunk;

use super::event_rooms::{self, CHUNKS};
use super::long_calls::{make_all_events, set_event_limit};
use super::{Thread, are_several};
use crate::abi::SHORT_LIMIT;
use crate::arch::{OwnCounter, add_to_own};
use crate::node::{SLOT_MASK, reference};
use crate::recording::Lost;
use crate::signals::SignalsBlocked;
use crate::traits::has;
use crate::{clock, recording};
use chase_logic::traits::CHOSEN;

/// The minimum duration of calls that are recorded, in ns; the maximum if none are.
static LIMIT_NS: AtomicU64 = AtomicU64::new(u64::MAX);
/// The same in ticks; too low until the clock's rate is known.
static LIMIT_TICKS: AtomicU64 = AtomicU64::new(u64::MAX);
/// Whether the limit in ticks is as precise as it gets.
static RATE_IS_KNOWN: AtomicBool = AtomicBool::new(false);
static KEEPS_FIRST: AtomicBool = AtomicBool::new(false);
/// Whether there are functions of which all calls are recorded.
static HAS_CHOSEN: AtomicBool = AtomicBool::new(false);
/// Size in bytes of all threads' events, and how much of it is not used yet.
static BYTES: AtomicU64 = AtomicU64::new(0);
static REMAINING: AtomicU64 = AtomicU64::new(0);

/// Begins to record these events, in so many bytes. Called while there is only one thread.
pub(crate) fn want(wanted: &chase_logic::events::Events, bytes: u64) {
    KEEPS_FIRST.store(wanted.keeps_first, Ordering::Relaxed);
    HAS_CHOSEN.store(wanted.has_chosen, Ordering::Relaxed);
    BYTES.store(bytes, Ordering::Relaxed);
    LIMIT_NS.store(wanted.limit_ns, Ordering::Relaxed);
    // No counter has less than one tick per ns.
    LIMIT_TICKS.store(wanted.limit_ns, Ordering::Relaxed);
    RATE_IS_KNOWN.store(!clock::is_time_stamp(), Ordering::Relaxed);
    if wanted.has_chosen || wanted.limit_ns == 0 {
        SHORT_LIMIT.store(0, Ordering::Relaxed);
    }
    if wanted.limit_ns == 0 && !wanted.has_chosen {
        make_all_events();
    } else {
        choose_limit();
    }
    renew();
}

/// Resets the room for events, for a new recording.
pub(crate) fn renew() {
    event_rooms::renew();
    REMAINING.store(BYTES.load(Ordering::Relaxed), Ordering::Relaxed);
}

/// Makes the call path report the calls that may become events.
fn choose_limit() {
    set_event_limit(match HAS_CHOSEN.load(Ordering::Relaxed) {
        true => 0,
        false => LIMIT_TICKS.load(Ordering::Relaxed),
    });
}

fn learn_rate() {
    if let Some(rate) = clock::ticks_per_us()
        && !RATE_IS_KNOWN.swap(true, Ordering::Relaxed)
    {
        let ticks = u128::from(LIMIT_NS.load(Ordering::Relaxed)) * u128::from(rate) / 1_000;
        LIMIT_TICKS.store(u64::try_from(ticks).unwrap_or(u64::MAX), Ordering::Relaxed);
        choose_limit();
    }
}

/// Takes room for a chunk; returns false if there is not enough. All further chunks of a thread can only use half of
/// what is left.
fn take_room(bytes: u64, is_first: bool) -> bool {
    let needed = if is_first { bytes } else { bytes * 2 };
    let take = |left: u64| if needed <= left { left.checked_sub(bytes) } else { None };
    REMAINING.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok()
}

/// The events of a thread.
pub(crate) struct Events {
    chunks: [Cell<*mut EventsHead>; CHUNKS],
    /// How many chunks there are, and which is being filled.
    used: Cell<usize>,
    current: Cell<usize>,
    /// The chunk that is being filled, its capacity, and the index of its next event.
    head: Cell<*mut EventsHead>,
    capacity: Cell<usize>,
    next: AtomicUsize,
    /// The number of events so far.
    count: AtomicUsize,
    /// Whether there is no room for more chunks.
    is_full: Cell<bool>,
}

impl Events {
    pub(super) const fn new() -> Self {
        Self {
            chunks: [const { Cell::new(ptr::null_mut()) }; CHUNKS],
            used: Cell::new(0),
            current: Cell::new(0),
            head: Cell::new(ptr::null_mut()),
            capacity: Cell::new(0),
            next: AtomicUsize::new(0),
            count: AtomicUsize::new(0),
            is_full: Cell::new(false),
        }
    }

    /// Offsets of the fields that the call path uses to write an event.
    pub(crate) const HEAD: usize = offset_of!(Self, head);
    pub(crate) const CAPACITY: usize = offset_of!(Self, capacity);
    pub(crate) const NEXT: usize = offset_of!(Self, next);
    pub(crate) const COUNT: usize = offset_of!(Self, count);

    fn enter(&self, number: usize) {
        self.current.set(number);
        self.head.set(self.chunks.get(number).map_or(ptr::null_mut(), Cell::get));
        self.capacity.set(capacity(number));
    }
}

fn capacity(number: usize) -> usize {
    // The header before the records has the size of one.
    records_per_chunk(PAGE << number, size_of::<EventRecord>()) - 1
}

impl Thread {
    /// Resets the events of the thread, which has a new record.
    pub(super) fn begin_events(&self) {
        let own = &self.events;
        own.chunks.iter().for_each(|chunk| chunk.set(ptr::null_mut()));
        own.used.set(0);
        own.enter(CHUNKS);
        own.capacity.set(0);
        own.next.store(0, Ordering::Relaxed);
        own.count.store(0, Ordering::Relaxed);
        own.is_full.set(false);
        // The first chunk is made in advance, since many threads would delay each other if each made room in the
        // middle of its work. Half of the room is kept for threads that turn out to need it.
        let is_kept = LIMIT_NS.load(Ordering::Relaxed) != u64::MAX;
        let is_plenty = REMAINING.load(Ordering::Relaxed) > BYTES.load(Ordering::Relaxed) / 2;
        if is_kept && is_plenty && are_several() {
            self.next_chunk();
        }
    }

    /// Handles the end of a long call of `node`: records it as an event if it is to be recorded. Returns whether room
    /// had to be made.
    pub(crate) fn note_call(&self, node: *mut Node, start_ticks: u64, ticks: u64) -> bool {
        if LIMIT_NS.load(Ordering::Relaxed) == u64::MAX {
            return false;
        }
        if !RATE_IS_KNOWN.load(Ordering::Relaxed) {
            learn_rate();
        }
        // SAFETY: the node is one of this thread's.
        let slot = unsafe { (*node).slot } & SLOT_MASK;
        let is_long = ticks >= LIMIT_TICKS.load(Ordering::Relaxed);
        if is_long || HAS_CHOSEN.load(Ordering::Relaxed) && has(slot, CHOSEN) {
            let (subject, kind) = (reference(node), EVENT_CALL);
            let used = self.events.used.get();
            self.add_event(EventRecord {
                start_ticks,
                ticks,
                subject,
                kind,
                ..EventRecord::default()
            });
            return self.events.used.get() > used;
        }
        false
    }

    /// Records a mark of the application: `subject` as in [`EventRecord`].
    pub(crate) fn note_mark(&self, subject: u32) {
        if LIMIT_NS.load(Ordering::Relaxed) != u64::MAX && !self.is_left_out() {
            let start_ticks = clock::now();
            self.add_event(EventRecord {
                start_ticks,
                subject,
                kind: EVENT_MARK,
                ..EventRecord::default()
            });
        }
    }

    /// (If all calls are events, the call path does the same: `.Lmore` in `call.S`.)
    fn add_event(&self, event: EventRecord) {
        let own = &self.events;
        let head = own.head.get();
        let at = add_to_own(&own.next, 1);
        // A handler in between may have continued with another chunk.
        if at < own.capacity.get() && ptr::eq(own.head.get(), head) {
            // SAFETY: the chunk has so many places.
            unsafe { self.write(head, at, event) };
        } else {
            self.add_event_slowly(event);
        }
    }

    #[cold]
    #[inline(never)]
    fn add_event_slowly(&self, event: EventRecord) {
        let own = &self.events;
        let _signals = SignalsBlocked::new();
        let mut at = own.next.load(Ordering::Relaxed);
        if at >= own.capacity.get() {
            if !self.next_chunk() {
                return self.lose_event();
            }
            at = 0;
        }
        own.next.store(at + 1, Ordering::Relaxed);
        // SAFETY: the chunk has that many places.
        unsafe { self.write(own.head.get(), at, event) };
    }

    /// Discards the events so far: those of the calls by which the cost of a call is measured.
    pub(crate) fn discard_events(&self) {
        let own = &self.events;
        let used = own.used.get();
        if used == 0 {
            return;
        }
        let _signals = SignalsBlocked::new();
        for (number, chunk) in own.chunks.iter().enumerate().take(used) {
            let len = (capacity(number) + 1) * size_of::<EventRecord>();
            // SAFETY: the chunk is this thread's, and holds so many records and a head that is as long as one.
            unsafe { chunk.get().cast::<u8>().write_bytes(0, len) };
        }
        own.enter(0);
        own.next.store(0, Ordering::Relaxed);
        own.count.store(0, Ordering::Relaxed);
    }

    /// Makes the chunks of this thread, which is ending, available to other threads. Signals are blocked.
    pub(crate) fn leave_events(&self) {
        let own = &self.events;
        let used = own.used.replace(0);
        own.enter(CHUNKS);
        own.capacity.set(0);
        if used > 0 {
            let chunks = own.chunks.iter().take(used).map(Cell::get);
            // SAFETY: the chunks are of this thread, which writes no more events.
            unsafe { event_rooms::leave(chunks, own.count.load(Ordering::Relaxed) as u64) };
        }
    }

    /// Continues in another chunk: a new one, or the one with the oldest events. Returns false if there is none.
    fn next_chunk(&self) -> bool {
        let own = &self.events;
        let used = own.used.get();
        // Even if there was no space before, a thread may have ended since.
        let may_find = !own.is_full.get() || used == 0 && event_rooms::are_any();
        if let Some(place) = own.chunks.get(used).filter(|_| may_find) {
            if let Some(chunk) = self.find_room(used) {
                place.set(chunk);
                own.used.set(used + 1);
                own.enter(used);
                return true;
            }
            own.is_full.set(true);
        }
        if used == 0 || KEEPS_FIRST.load(Ordering::Relaxed) {
            return false;
        }
        own.enter((own.current.get() + 1) % used);
        true
    }

    /// Returns a chunk for this thread: a new one or, unless the first events are to be kept, one of a thread that has
    /// ended.
    fn find_room(&self, number: usize) -> Option<*mut EventsHead> {
        let bytes = PAGE << number;
        if take_room(bytes as u64, number == 0)
            && let Some(chunk) = recording::chunk(ChunkKind::Events, self.index(), bytes)
        {
            chunk.commit(capacity(number));
            return Some(chunk.contents().cast());
        }
        let may_take = !KEEPS_FIRST.load(Ordering::Relaxed) && event_rooms::are_any();
        if may_take { event_rooms::take(number, self.index()) } else { None }
    }

    fn lose_event(&self) {
        match self.events.chunks.first().map(Cell::get).filter(|chunk| !chunk.is_null()) {
            // SAFETY: the chunk is in the mapping, and this thread's.
            Some(first) => unsafe { OwnCounter::at(&raw mut (*first).lost) }.add(1),
            None => recording::unseen(Lost::Event),
        }
    }

    /// Writes an event, perhaps over another one, by the stores that distinguish complete events from those that are half
    /// written, in their order.
    ///
    /// # Safety
    /// `at` is a place in the chunk.
    unsafe fn write(&self, head: *mut EventsHead, at: usize, event: EventRecord) {
        let number = add_to_own(&self.events.count, 1) as u64 + 1;
        let event = EventRecord { number, ..event };
        let event = EventRecord { check: event.check_of(), ..event };
        // SAFETY: the caller vouches for the place, which is this thread's.
        unsafe {
            let place = head.cast::<EventRecord>().add(1 + at).cast::<u64>();
            for (word, value) in event.stores() {
                place.add(word).write_volatile(value);
                compiler_fence(Ordering::SeqCst);
            }
        }
    }
}
