//! What the hook knows of a thread: its shadow stack, its tree, its record.
//!
//! A thread gets its [`Thread`] when it starts if its creation was seen, otherwise at its first call, or never if
//! there is no memory or room. Before that, it has [`NO_THREAD`], and after its end a similar placeholder, whose
//! shadow stack is full, so that every call takes the slow path.

mod event_rooms;
mod events;
mod kept;
mod left_out;
mod long_calls;
mod off_cpu;
mod ran;
mod starts;

use core::cell::{Cell, UnsafeCell};
use core::ffi::c_void;
use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};

use chase_format::layout::{
    NONE, Node, PAGE, THREAD_ENDED, THREAD_FOUND, THREAD_LIVE, THREAD_MAIN, ThreadRecord,
};
use chase_logic::ran::Ran;

use self::off_cpu::OffCpu;
use crate::abi::{Countdown, Entry, ThreadHead};
use crate::arch::{self, OwnCounter, set_words, words_offset};
use crate::counts::{self, Counts, no_counts};
use crate::lock::Fork;
use crate::node::reference;
use crate::readable::Reader;
use crate::recording::Lost;
use crate::segments::{first_segment, give_back_segment, take_first_segment};
use crate::signals::SignalsBlocked;
use crate::stack::Stack;
use crate::tree::{FIRST_ENTRIES, Tree};
use crate::{abi, clock, cost, pages, recording, sys};
use chase_logic::memory::Memory;
use chase_logic::pending::Pending;

pub(crate) use self::events::{Events, renew as renew_events, want as want_events};
pub(crate) use self::kept::{discard_copy, keep_copy, restore, uncredited};
pub(crate) use self::long_calls::{LONG_TICKS, ask_limit, record_texts, set_ask_limit, text_limit};
pub(crate) use self::off_cpu::{LEAST_COST, is_on as is_asking, start as start_asking};
pub(crate) use self::starts::{Start, give_back_start, take_start};

/// How many rounds of destructors the C library runs; ours is the last, after all others.
const DESTRUCTOR_ROUNDS: u32 = 4;

/// Whether the process has, or had, more than one thread.
static SEVERAL: AtomicBool = AtomicBool::new(false);

/// The C library's key for thread-specific data by which the end of threads is noticed, and its function to set that.
static KEY: AtomicU32 = AtomicU32::new(NONE);
static SET_SPECIFIC: AtomicUsize = AtomicUsize::new(0);

/// A thread, in a page of its own that also holds its first table. In a fork's child the page is zeroed: see
/// `kept.rs`.
#[repr(C, align(64))]
pub(crate) struct Thread {
    pub(crate) head: ThreadHead,
    pub(crate) tree: Tree,
    /// Its countdowns; `None`: every call is timed.
    pub(crate) counts: Cell<Option<&'static Counts>>,
    pub(crate) stack: Cell<Stack>,
    /// Whether calls of it were abandoned without returning.
    pub(crate) has_abandoned_calls: Cell<bool>,
    /// When it last called a function that jumps, unwinds, or saves a place to jump to; 0: never.
    pub(crate) last_jump_ticks: Cell<u64>,
    /// What [`crate::loading`] and [`crate::process`] have to do at its next call.
    pub(crate) pending: Cell<Pending>,
    record: Cell<*mut ThreadRecord>,
    /// Its time on the CPU before its record began, in ns.
    cpu_before_ns: Cell<u64>,
    ran: Cell<Ran>,
    pub(crate) off_cpu: OffCpu,
    pub(crate) events: Events,
    pub(crate) destructor_rounds: Cell<u32>,
    /// Whether it is not to be recorded; see `left_out.rs`.
    is_left_out: Cell<bool>,
}

/// A placeholder for threads without a [`Thread`].
#[repr(transparent)]
pub(crate) struct NoThread(UnsafeCell<Thread>);
// SAFETY: it is never written: its `top` is 0, so nothing is claimed from it.
unsafe impl Sync for NoThread {}

impl NoThread {
    const fn new() -> Self {
        Self(UnsafeCell::new(Thread::new(Stack::unknown(), true)))
    }

    fn head(&self) -> *mut ThreadHead {
        self.0.get().cast()
    }
}

/// The placeholder of threads that have no [`Thread`] yet.
pub(crate) static NO_THREAD: NoThread = NoThread::new();

/// The placeholder of threads that have ended: they get no [`Thread`] again.
static ENDED: NoThread = NoThread::new();

/// Whether the calling thread is not recorded any more. The C library may still make calls for it after all
/// destructors.
pub(crate) fn has_ended() -> bool {
    ptr::eq(arch::current_thread(), ENDED.head())
}

/// Returns the calling thread's [`Thread`], or the placeholder.
pub(crate) fn current_or_nobody() -> &'static Thread {
    // SAFETY: it exists until the thread's end, its mutable parts are in cells, and it begins with its head.
    unsafe { &*arch::current_thread().cast() }
}

/// Returns the calling thread's [`Thread`], if it has one.
pub(crate) fn current() -> Option<&'static Thread> {
    Some(current_or_nobody()).filter(|thread| !thread.head.is_nobody)
}

/// Makes `thread` the calling thread's.
fn set_current(thread: &Thread) {
    let counts = thread.counts.get().map_or(no_counts(), Counts::address);
    set_words(ptr::from_ref(&thread.head).cast_mut(), counts, thread.tree.root.get());
}

/// Makes the calling thread have no [`Thread`] until it gets another.
pub(crate) fn clear_current() {
    set_words(NO_THREAD.head(), no_counts(), ptr::null());
}

/// How a thread was created.
#[derive(Clone, Copy)]
pub(crate) struct Origin {
    pub(crate) kind: u32,
    pub(crate) start_routine: usize,
    pub(crate) argument: usize,
    pub(crate) creation_site: usize,
    pub(crate) creator: u32,
    /// End and size of the thread's own stack if its creation was seen; size 0 if unknown.
    pub(crate) stack: (usize, usize),
}

impl Origin {
    pub(crate) const MAIN: Self = Self::without_start(THREAD_MAIN);
    pub(crate) const FOUND: Self = Self::without_start(THREAD_FOUND);

    const fn without_start(kind: u32) -> Self {
        Self { kind, start_routine: 0, argument: 0, creation_site: 0, creator: NONE, stack: (0, 0) }
    }
}

impl Thread {
    const fn new(stack: Stack, is_nobody: bool) -> Self {
        Self {
            head: ThreadHead { top: AtomicUsize::new(0), busy: Cell::new(0), is_nobody },
            tree: Tree::new(),
            counts: Cell::new(None),
            stack: Cell::new(stack),
            has_abandoned_calls: Cell::new(false),
            last_jump_ticks: Cell::new(0),
            pending: Cell::new(Pending::NONE),
            record: Cell::new(ptr::null_mut()),
            cpu_before_ns: Cell::new(0),
            ran: Cell::new(Ran::UNKNOWN),
            off_cpu: OffCpu::new(),
            events: Events::new(),
            destructor_rounds: Cell::new(0),
            is_left_out: Cell::new(false),
        }
    }

    pub(crate) fn index(&self) -> u32 {
        self.tree.owner.get()
    }

    /// Whether the thread has ended; its memory stays if a suspended call still refers to it.
    pub(crate) fn has_ended(&self) -> bool {
        self.destructor_rounds.get() >= DESTRUCTOR_ROUNDS
    }

    /// Removes the calling thread, which this is, from the recording and takes its memory: it was not one of the
    /// program's.
    pub(crate) fn vanish(&self) {
        let _signals = SignalsBlocked::new();
        // SAFETY: as in `count_untimed`. Nobody has read the record yet.
        unsafe { (*self.record.get()).state = 0 };
        self.mark_ended();
        forget();
    }

    /// Marks the thread as ended for the recording, though it runs on: its frames are kept for calls that return
    /// through them.
    pub(crate) fn mark_ended(&self) {
        self.destructor_rounds.set(DESTRUCTOR_ROUNDS);
    }

    /// Whether the thread is in the middle of a change, interrupted by the handler of a synchronous signal.
    pub(crate) fn is_busy(&self) -> bool {
        self.head.busy.get() > 0
    }

    /// Credits what was only counted, and times every call until the slots' next review.
    pub(crate) fn stop_sampling(&self) {
        if let Some(counts) = self.counts.get() {
            counts.stop();
        }
    }

    /// Records a completed call of `ticks` outside of the call path.
    pub(crate) fn record(&self, node: *mut Node, ticks: u64) {
        self.tree.record(node, ticks, !self.is_busy());
    }

    /// Makes room in the histogram of `node` for a completed call of `ticks`.
    pub(crate) fn make_room(&self, node: *mut Node, ticks: u64) {
        // (For threads that live shortly, this is much of what chase does in them.)
        if !self.is_busy() && self.tree.lacks_page(node, ticks) {
            let began = clock::now();
            self.tree.make_page(node, ticks);
            self.note_slow(cost::own_ticks(clock::now().saturating_sub(began)));
        }
    }

    /// Counts calls of this thread that were not recorded.
    pub(crate) fn count_untimed(&self, calls: u64) {
        // SAFETY: the record is this thread's own, in the mapping.
        unsafe { OwnCounter::at(&raw mut (*self.record.get()).untimed_calls) }.add(calls);
    }

    /// Sends the thread's next call through the slow path, to do `pending`.
    pub(crate) fn defer(&self, pending: Pending) {
        let _signals = SignalsBlocked::new();
        self.stop_sampling();
        self.stop_passing();
        self.pending.set(pending);
        self.tree.close();
    }

    /// Marks all pending work as done.
    pub(crate) fn clear_pending(&self) {
        let _signals = SignalsBlocked::new();
        self.pending.set(Pending::NONE);
        self.tree.open();
    }

    /// Records that the thread ends now.
    pub(crate) fn stamp_end(&self) {
        if self.is_left_out() {
            return;
        }
        self.note_name();
        // SAFETY: as in `count_untimed`.
        unsafe {
            (*self.record.get()).end_ticks = clock::now();
            (*self.record.get()).state = THREAD_ENDED;
        }
    }

    /// Records that the recording of the thread ended at `ticks`, though it runs on.
    pub(crate) fn stamp_left(&self, ticks: u64) {
        // SAFETY: as in `count_untimed`; the thread is stopped.
        unsafe { (*self.record.get()).end_ticks = ticks };
    }

    /// Adds to the number of samples whose cost was measured, and to the sum of these costs in ticks.
    pub(crate) fn note_samples(&self, samples: u64, ticks: u64) {
        // SAFETY: as in `count_untimed`.
        unsafe {
            OwnCounter::at(&raw mut (*self.record.get()).samples).add(samples);
            OwnCounter::at(&raw mut (*self.record.get()).samples_ticks).add(ticks);
        }
    }

    /// Adds the ticks that the slow path took before a call, or after it.
    pub(crate) fn note_slow(&self, ticks: u64) {
        let record = self.record.get();
        if !record.is_null() {
            // SAFETY: as in `count_untimed`.
            unsafe { OwnCounter::at(&raw mut (*record).slow_ticks) }.add(ticks);
        }
    }

    /// Returns its record.
    pub(crate) fn own_record(&self) -> *mut ThreadRecord {
        self.record.get()
    }

    /// Returns the time since its start, in ticks.
    pub(crate) fn life_ticks(&self) -> u64 {
        // SAFETY: as in `count_untimed`.
        clock::now().saturating_sub(unsafe { (*self.record.get()).start_ticks })
    }

    /// Begins its recorded life, which what it did before is no part of. The thread has a record.
    pub(crate) fn begin_life(&self) {
        self.cpu_before_ns.set(cost::thread_ns());
        self.ran.set(Ran::UNKNOWN);
        // SAFETY: as in `count_untimed`.
        unsafe { (*self.record.get()).start_ticks = clock::now() };
    }

    /// Stores the thread's time on the CPU in the recording.
    pub(crate) fn note_cpu(&self) {
        if sys::is_confined() {
            return;
        }
        let ns = cost::thread_ns().saturating_sub(self.cpu_before_ns.get());
        // SAFETY: as in `count_untimed`.
        unsafe {
            (*self.record.get()).cpu_ns = ns;
            (*self.record.get()).cpu_is_final = 1;
        }
    }

    /// Stores the thread's name in the recording.
    pub(crate) fn note_name(&self) {
        if let Some(name) = sys::thread_name() {
            // SAFETY: as in `count_untimed`.
            unsafe { (*self.record.get()).name = name };
        }
    }

    /// Enters the thread in the (new) recording: makes a record and a root. Returns false if there is no room.
    pub(crate) fn enroll(&self, origin: &Origin) -> bool {
        let Some((record, index)) = recording::thread_record() else { return false };
        let table = self.first_table();
        // SAFETY: the first table is in this thread's page, behind the `Thread`.
        unsafe { ptr::write_bytes(table.cast::<u8>(), 0, TABLE_LEN) };
        if !self.tree.plant(index, table) {
            return false;
        }
        self.record.set(record);
        self.expect_fork();
        self.begin_life();
        // SAFETY: the record was given to this thread; `state`, stored last, makes it readable.
        unsafe {
            (*record).tid = sys::gettid();
            (*record).index = index;
            (*record).origin = origin.kind;
            (*record).start_routine_avma = origin.start_routine as u64;
            (*record).start_argument = origin.argument as u64;
            (*record).creation_site_avma = origin.creation_site as u64;
            (*record).creator = origin.creator;
            (*record).root_ref = reference(self.tree.root.get());
            (*record).name = sys::thread_name().unwrap_or_default();
        }
        self.begin_events();
        self.begin_asking(record);
        // SAFETY: as above.
        unsafe { AtomicU32::from_ptr(&raw mut (*record).state) }
            .store(THREAD_LIVE, Ordering::Release);
        true
    }

    fn first_table(&self) -> *mut Entry {
        let page = &raw const *self as usize;
        (page + PAGE - TABLE_LEN) as *mut Entry
    }
}

const TABLE_LEN: usize = FIRST_ENTRIES * size_of::<Entry>();
const _: () = assert!(size_of::<Thread>() + TABLE_LEN <= PAGE);

/// Handles the locks in a fork.
pub(crate) fn fork(moment: Fork) {
    starts::fork(moment);
    event_rooms::fork(moment);
}

/// Makes the calling thread's [`Thread`]; returns null if there is no memory. Signals are blocked.
fn create(origin: &Origin) -> *mut Thread {
    let page = pages::allocate_wiped();
    if page.is_null() {
        return ptr::null_mut();
    }
    let segment = take_first_segment();
    if segment.is_null() {
        pages::give_back_wiped(page);
        return ptr::null_mut();
    }
    let thread = page.cast::<Thread>();
    // SAFETY: both pages are ours, zeroed and large enough.
    unsafe {
        thread.write(Thread::new(Stack::of_thread(origin.kind, origin.stack), false));
        if !(*thread).enroll(origin) {
            pages::give_back_wiped(page);
            give_back_segment(segment);
            return ptr::null_mut();
        }
        first_segment(segment, thread.cast(), (*thread).tree.root.get());
        (*thread).counts.set(counts::allocate());
        (*thread).expect_fork();
    }
    thread
}

/// Gives the calling thread a [`Thread`]; returns `None` if there is no memory.
pub(crate) fn register(origin: &Origin) -> Option<&'static Thread> {
    let _signals = SignalsBlocked::new();
    let thread = create(origin);
    if thread.is_null() {
        recording::unseen(Lost::Thread);
        return None;
    }
    // SAFETY: it was just made.
    let thread = unsafe { &*thread };
    set_current(thread);
    set_specific(ptr::from_ref(thread).cast());
    if origin.kind != THREAD_MAIN {
        expect_several(thread);
    }
    Some(thread)
}

/// Notes that `thread` is about to create another, or to become one of several: from now on, calls may wait for
/// locks.
pub(crate) fn expect_several(thread: &Thread) {
    if !SEVERAL.swap(true, Ordering::Relaxed) {
        thread.stop_sampling();
    }
}

/// Whether the process has, or had, more than one thread.
pub(crate) fn are_several() -> bool {
    SEVERAL.load(Ordering::Relaxed)
}

/// Stores the key of thread-specific data by which the end of threads is noticed, and the function that sets it.
pub(crate) fn set_key(key: u32, set_specific: usize) {
    SET_SPECIFIC.store(set_specific, Ordering::Relaxed);
    KEY.store(key, Ordering::Release);
}

/// Sets the calling thread's data of that key; with null, its end is not noticed.
pub(crate) fn set_specific(value: *const c_void) {
    type SetSpecific = unsafe extern "C" fn(u32, *const c_void) -> i32;
    let (key, set) = (KEY.load(Ordering::Acquire), SET_SPECIFIC.load(Ordering::Relaxed));
    if key != NONE {
        // SAFETY: the function is the C library's, of this type; the key exists.
        let set: SetSpecific = unsafe { core::mem::transmute(set) };
        // SAFETY: as above.
        unsafe { set(key, value) };
    }
}

/// Makes the calling thread have no [`Thread`] any more, and get none.
pub(crate) fn forget() {
    let thread = current();
    set_specific(ptr::null());
    set_words(ENDED.head(), no_counts(), ptr::null());
    if let Some(thread) = thread {
        thread.stop_sampling();
        let _signals = SignalsBlocked::new();
        if let Some(counts) = thread.counts.take() {
            counts::give_back(counts);
        }
    }
}

/// Prepares for a task that is about to be created with its thread data at `thread_pointer`. A program that creates a task
/// without the C library may give it a few pages of zeros, enough for `errno`, or a copy of this thread's data. The
/// hook's words in these must be those of a thread that is not recorded. Any other words are the dynamic linker's, or
/// not thread data at all.
pub(crate) fn expect_foreign(thread: &Thread, thread_pointer: usize) {
    let words = thread_pointer.wrapping_add_signed(words_offset());
    let Some(mut reader) = Reader::new() else { return };
    let (Some(found), Some(counts)) =
        (reader.word(words.wrapping_add(abi::THREAD)), reader.word(words))
    else {
        return;
    };
    if found == 0 && counts == 0 || found == ptr::from_ref(thread).addr() {
        let context = words + abi::CONTEXT;
        if sys::can_overwrite(words) && sys::can_overwrite(context) {
            // SAFETY: nobody uses these words before that thread runs, and then only the hook.
            unsafe {
                *(words as *mut *const Countdown) = no_counts();
                *((words + abi::THREAD) as *mut *mut ThreadHead) = ENDED.head();
                *(context as *mut usize) = 0;
            }
        }
        recording::unseen(Lost::Thread);
    }
}

/// Stops recording the calling thread.
pub(crate) fn leave() {
    forget();
    recording::unseen(Lost::Thread);
}
