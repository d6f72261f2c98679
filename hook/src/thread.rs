//! What the hook knows of a thread: its shadow stack, its tree, its record.
//!
//! A thread gets its [`Thread`] when it starts (its creation was seen), at its first call (it was
//! not), or never (no memory, no room); until then, and after its end, it has [`NO_THREAD`], whose
//! shadow stack is full, so that every call takes the slow path.

mod events;
mod kept;
mod long_calls;
mod off_cpu;
mod starts;

use core::cell::{Cell, UnsafeCell};
use core::ffi::c_void;
use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};

use chase_format::layout::{
    NONE, Node, THREAD_ENDED, THREAD_FOUND, THREAD_LIVE, THREAD_MAIN, ThreadRecord,
};

use self::events::Events;
use self::off_cpu::OffCpu;
use crate::abi::{Countdown, Entry, ThreadHead};
use crate::arch::{self, OwnCounter, set_words, words_offset};
use crate::counts::{self, Counts, no_counts};
use crate::node::reference;
use crate::pages::PAGE;
use crate::readable::Reader;
use crate::recording::Lost;
use crate::segments::{first_segment, give_back_segment, take_first_segment};
use crate::signals::SignalsBlocked;
use crate::stack::Stack;
use crate::tree::{FIRST_ENTRIES, Tree};
use crate::{abi, clock, cost, pages, recording, sys};

pub(crate) use self::events::{Wanted as WantedEvents, renew as renew_events, want as want_events};
pub(crate) use self::kept::{keep, keep_no_more, restore, uncredited};
pub(crate) use self::long_calls::{ask_limit, set_ask_limit};
pub(crate) use self::off_cpu::{LEAST_COST, is_on as is_asking, start as start_asking};
pub(crate) use self::starts::{Start, fork, give_back_start, take_start};

/// Rounds of destructors that the C library runs; the last is ours, after all others.
const DESTRUCTOR_ROUNDS: u32 = 4;

/// Whether the process has, or had, more than one thread.
static SEVERAL: AtomicBool = AtomicBool::new(false);

/// The C library's key for thread-specific data by which a thread's end is noticed, and its function that sets it.
static KEY: AtomicU32 = AtomicU32::new(NONE);
static SET_SPECIFIC: AtomicUsize = AtomicUsize::new(0);

/// One thread, in a page of its own together with its first table. In a fork's child it is zeroed: see `kept.rs`.
#[repr(C, align(64))]
pub(crate) struct Thread {
    pub(crate) head: ThreadHead,
    pub(crate) tree: Tree,
    /// Its countdowns; `None`: every call is timed.
    pub(crate) counts: Cell<Option<&'static Counts>>,
    pub(crate) stack: Cell<Stack>,
    /// Whether calls of it were left without a return.
    pub(crate) was_left: Cell<bool>,
    /// When it last called a function that jumps, unwinds, or notes where it is for that; 0: never.
    pub(crate) last_leaving_ticks: Cell<u64>,
    /// What [`crate::loading`] and [`crate::process`] have to do at the next call.
    pub(crate) pending: Cell<Pending>,
    record: Cell<*mut ThreadRecord>,
    /// Its time on the CPU before its record began, ns.
    cpu_before_ns: Cell<u64>,
    pub(crate) off_cpu: OffCpu,
    events: Events,
    pub(crate) destructor_rounds: Cell<u32>,
}

/// Work that waits for a thread's next call. The tree is closed as long as there is any.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Pending {
    /// A `dlopen` or `dlclose` that was called at this stack pointer, and returns there; 0 if none.
    pub(crate) load_sp: usize,
    /// The outermost such call under way.
    pub(crate) outer_sp: usize,
    /// What it loads is for all objects to find.
    pub(crate) global: bool,
    /// What is on the stack at `load_sp` as long as it runs; 0: the address of a frame's pad.
    pub(crate) return_address: usize,
    /// It has not been entered yet.
    pub(crate) entering: bool,
    /// How often it was looked for in vain.
    pub(crate) tries: u32,
    /// A fork may have happened behind the C library's back.
    pub(crate) fork: bool,
}

impl Pending {
    pub(crate) const NONE: Self = Self {
        load_sp: 0,
        outer_sp: 0,
        return_address: 0,
        global: false,
        entering: false,
        tries: 0,
        fork: false,
    };
}

/// A thread that is none.
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

/// Stands for the thread that has none.
pub(crate) static NO_THREAD: NoThread = NoThread::new();

/// Stands for a thread after its end: it gets none again.
static ENDED: NoThread = NoThread::new();

/// Whether the calling thread is not recorded any more. What the C library still calls for it,
/// after all destructors, is.
pub(crate) fn has_ended() -> bool {
    ptr::eq(arch::current_thread(), ENDED.head())
}

/// The calling thread's [`Thread`], or the one that stands for it.
pub(crate) fn current_or_nobody() -> &'static Thread {
    // SAFETY: it stays until the thread's end, what changes in it is in cells, and it begins with its head.
    unsafe { &*arch::current_thread().cast() }
}

/// The calling thread's [`Thread`], if it has one.
pub(crate) fn current() -> Option<&'static Thread> {
    Some(current_or_nobody()).filter(|thread| !thread.head.is_nobody)
}

/// Makes this thread the calling one's.
fn set_current(thread: &Thread) {
    let counts = thread.counts.get().map_or(no_counts(), Counts::as_word);
    set_words(ptr::from_ref(&thread.head).cast_mut(), counts, thread.tree.root.get());
}

/// The calling thread has no [`Thread`] from now on, until it gets one.
pub(crate) fn have_none() {
    set_words(NO_THREAD.head(), no_counts(), ptr::null());
}

/// How a thread came to be.
pub(crate) struct Origin {
    pub(crate) kind: u32,
    pub(crate) start_routine: usize,
    pub(crate) argument: usize,
    pub(crate) creation_site: usize,
    pub(crate) creator: u32,
    /// End and size of the thread's own stack, for one whose creation was seen; size 0 if unknown.
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
            was_left: Cell::new(false),
            last_leaving_ticks: Cell::new(0),
            pending: Cell::new(Pending::NONE),
            record: Cell::new(ptr::null_mut()),
            cpu_before_ns: Cell::new(0),
            off_cpu: OffCpu::new(),
            events: Events::new(),
            destructor_rounds: Cell::new(0),
        }
    }

    pub(crate) fn index(&self) -> u32 {
        self.tree.owner.get()
    }

    /// Whether the thread is gone; its memory stays if a suspended call still refers to it.
    pub(crate) fn has_ended(&self) -> bool {
        self.destructor_rounds.get() >= DESTRUCTOR_ROUNDS
    }

    /// The calling thread, which this is, was never one of the program's: it has no record and no memory from now on.
    pub(crate) fn vanish(&self) {
        let _signals = SignalsBlocked::new();
        // SAFETY: as in `count_untimed`. Nobody has read it yet.
        unsafe { (*self.record.get()).state = 0 };
        self.close_for_good();
        forget();
    }

    /// The recording ends, and not the thread: its frames are left to whoever returns through them.
    pub(crate) fn close_for_good(&self) {
        self.destructor_rounds.set(DESTRUCTOR_ROUNDS);
    }

    /// Whether the thread is in the middle of a change, which a handler of a synchronous signal may
    /// have interrupted.
    pub(crate) fn is_busy(&self) -> bool {
        self.head.busy.get() > 0
    }

    /// Credits what was only counted, and times every call until slots are looked at again.
    pub(crate) fn stop_sampling(&self) {
        if let Some(counts) = self.counts.get() {
            counts.stop();
        }
    }

    /// Records a completed call of `ticks` outside the call path.
    pub(crate) fn record(&self, node: *mut Node, ticks: u64) {
        self.tree.record(node, ticks, !self.is_busy());
    }

    /// Makes room for a call of `ticks`, which has completed.
    pub(crate) fn make_room(&self, node: *mut Node, ticks: u64) {
        if !self.is_busy() {
            self.tree.make_page(node, ticks);
        }
    }

    /// Counts a call of this thread that was not recorded.
    pub(crate) fn count_untimed(&self) {
        // SAFETY: the record is this thread's own, in the mapping.
        unsafe { OwnCounter::at(&raw mut (*self.record.get()).untimed_calls) }.add(1);
    }

    /// Sends the thread's next call through the slow path, to do `pending`.
    pub(crate) fn defer(&self, pending: Pending) {
        let _signals = SignalsBlocked::new();
        self.stop_sampling();
        self.pending.set(pending);
        self.tree.close();
    }

    /// Nothing is pending any more.
    pub(crate) fn settle(&self) {
        let _signals = SignalsBlocked::new();
        self.pending.set(Pending::NONE);
        self.tree.open();
    }

    /// Puts the thread's end into the recording, as of now.
    pub(crate) fn stamp_end(&self) {
        self.note_name();
        // SAFETY: as in `count_untimed`.
        unsafe {
            (*self.record.get()).end_ticks = clock::now();
            (*self.record.get()).state = THREAD_ENDED;
        }
    }

    /// Adds to the number of samples whose cost was measured, and to the sum of these costs, in ticks.
    pub(crate) fn note_samples(&self, samples: u64, ticks: u64) {
        // SAFETY: as in `count_untimed`.
        unsafe {
            OwnCounter::at(&raw mut (*self.record.get()).samples).add(samples);
            OwnCounter::at(&raw mut (*self.record.get()).samples_ticks).add(ticks);
        }
    }

    /// Adds what the slow path took before a call, in ticks.
    pub(crate) fn note_slow(&self, ticks: u64) {
        let record = self.record.get();
        if !record.is_null() {
            // SAFETY: as in `count_untimed`.
            unsafe { OwnCounter::at(&raw mut (*record).slow_ticks) }.add(ticks);
        }
    }

    /// Its record.
    pub(crate) fn own_record(&self) -> *mut ThreadRecord {
        self.record.get()
    }

    /// Its time so far, in ticks.
    pub(crate) fn life_ticks(&self) -> u64 {
        // SAFETY: as in `count_untimed`.
        clock::now().saturating_sub(unsafe { (*self.record.get()).start_ticks })
    }

    /// Puts the thread's time on the CPU into the recording.
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

    /// Puts the thread's name into the recording.
    pub(crate) fn note_name(&self) {
        if let Some(name) = sys::thread_name() {
            // SAFETY: as in `count_untimed`.
            unsafe { (*self.record.get()).name = name };
        }
    }

    /// Enters the thread into the (new) recording: a record, a root.
    pub(crate) fn enroll(&self, origin: &Origin) -> bool {
        let Some((record, index)) = recording::thread_record() else { return false };
        let table = self.first_table();
        // SAFETY: the first table is in this thread's page, behind the `Thread`.
        unsafe { ptr::write_bytes(table.cast::<u8>(), 0, TABLE_LEN) };
        if !self.tree.plant(index, table) {
            return false;
        }
        self.record.set(record);
        self.cpu_before_ns.set(cost::thread_ns());
        self.expect_fork();
        // SAFETY: the record was handed to this thread; `state` makes it readable, last.
        unsafe {
            (*record).tid = sys::gettid();
            (*record).index = index;
            (*record).origin = origin.kind;
            (*record).start_ticks = clock::now();
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

/// Makes the calling thread's [`Thread`]. Signals are blocked.
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

/// Gives the calling thread a [`Thread`], if that can be.
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

/// `thread` is about to create another one, or to be one of several: locks may be waited for.
pub(crate) fn expect_several(thread: &Thread) {
    if !SEVERAL.swap(true, Ordering::Relaxed) {
        thread.stop_sampling();
    }
}

/// Whether the process has, or had, more than one thread.
pub(crate) fn are_several() -> bool {
    SEVERAL.load(Ordering::Relaxed)
}

/// Notes by which key of thread-specific data the end of threads is noticed, and the function that sets it.
pub(crate) fn set_key(key: u32, set_specific: usize) {
    SET_SPECIFIC.store(set_specific, Ordering::Relaxed);
    KEY.store(key, Ordering::Release);
}

/// Sets the calling thread's data of that key: null, and its end is not noticed.
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

/// The calling thread has no [`Thread`] from now on, and gets none.
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

/// A task is about to be made that has its thread data at `thread_pointer`. Who makes one without the C
/// library may give it a few pages of zeros, enough for `errno`, or a copy of what this thread has; the
/// hook's words there must be those of a thread that is not recorded. Any others are the dynamic
/// linker's, or no thread data at all.
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
            // SAFETY: the words are ours as soon as that thread runs, and nobody else's before.
            unsafe {
                *(words as *mut *const Countdown) = no_counts();
                *((words + abi::THREAD) as *mut *mut ThreadHead) = ENDED.head();
                *(context as *mut usize) = 0;
            }
        }
        recording::unseen(Lost::Thread);
    }
}

/// The calling thread is not recorded any more.
pub(crate) fn leave() {
    forget();
    recording::unseen(Lost::Thread);
}
