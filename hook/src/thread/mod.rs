//! What the hook knows of a thread: its shadow stack, its tree, its record.
//!
//! A thread gets its [`Thread`] when it starts (its creation was seen), at its first call (it was
//! not), or never (no memory, no room); until then, and after its end, it has [`NO_THREAD`], whose
//! shadow stack is full, so that every call takes the slow path.

mod creation;
mod end;
mod found;
mod kept;
mod off_cpu;
mod python;
mod python_objects;
mod start;

use core::cell::{Cell, UnsafeCell};
use core::ptr;
use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use chase_format::layout::{
    NONE, Node, THREAD_ENDED, THREAD_FOUND, THREAD_LIVE, THREAD_MAIN, ThreadRecord,
};

use self::end::{DESTRUCTOR_ROUNDS, forget, watch_end};
use self::off_cpu::OffCpu;
use crate::arch::{self, current_thread, set_current_thread};
use crate::frames::{first_segment, give_back_segment, take_first_segment};
use crate::pages::PAGE;
use crate::recording::Lost;
use crate::sampling::{self, Counts, no_counts};
use crate::signals::SignalsBlocked;
use crate::stack::Stack;
use crate::tree::{Tree, reference};
use crate::{clock, cost, pages, process, recording, sys};

pub(crate) use self::end::watch_ends;
pub(crate) use self::kept::{Kept, keep, keep_no_more, restore};
pub(crate) use self::off_cpu::{LIMIT as ASK_LIMIT, start as start_asking};
pub(crate) use self::start::{
    Plan, after_fork_in_child, after_fork_in_parent, before_fork, begin, prepare,
};

/// One thread, in a page of its own together with its first table. In a fork's child it is zeroed: see `kept.rs`.
#[repr(C, align(64))]
pub(crate) struct Thread {
    /// Where the next frame goes. The call path claims and releases by single instructions.
    pub(crate) top: AtomicUsize,
    /// Its countdowns; `None`: every call is timed.
    pub(crate) counts: Cell<Option<&'static Counts>>,
    /// How many [`SignalsBlocked`] of this thread there are.
    busy: Cell<u32>,
    pub(crate) tree: Tree,
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
    destructor_rounds: Cell<u32>,
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

#[repr(transparent)]
pub(crate) struct NoThread(UnsafeCell<Thread>);
// SAFETY: it is never written: its `top` is 0, so nothing is claimed from it.
unsafe impl Sync for NoThread {}

/// Stands for the thread that has none.
pub(crate) static NO_THREAD: NoThread = NoThread(UnsafeCell::new(Thread::new(Stack::unknown())));

/// The same after its end: it gets none again.
static ENDED: NoThread = NoThread(UnsafeCell::new(Thread::new(Stack::unknown())));

/// Address of [`NO_THREAD`].
pub(crate) fn no_thread() -> *mut Thread {
    NO_THREAD.0.get()
}

/// Whether the calling thread is not recorded any more. What the C library still calls for it,
/// after all destructors, is.
pub(crate) fn has_ended() -> bool {
    ptr::eq(current_thread(), ENDED.0.get())
}

/// The thread at `current`, unless it stands for none.
fn known(current: *mut Thread) -> Option<&'static Thread> {
    // SAFETY: any other is the calling thread's own. It stays until the thread's end, and what
    // changes in it is in cells.
    (current != no_thread() && current != ENDED.0.get()).then(|| unsafe { &*current })
}

/// The calling thread's [`Thread`], if it has one.
pub(crate) fn current() -> Option<&'static Thread> {
    known(current_thread())
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
    const FOUND: Self = Self::without_start(THREAD_FOUND);

    const fn without_start(kind: u32) -> Self {
        Self { kind, start_routine: 0, argument: 0, creation_site: 0, creator: NONE, stack: (0, 0) }
    }
}

impl Thread {
    const fn new(stack: Stack) -> Self {
        Self {
            top: AtomicUsize::new(0),
            counts: Cell::new(None),
            busy: Cell::new(0),
            tree: Tree::new(),
            stack: Cell::new(stack),
            was_left: Cell::new(false),
            last_leaving_ticks: Cell::new(0),
            pending: Cell::new(Pending::NONE),
            record: Cell::new(ptr::null_mut()),
            cpu_before_ns: Cell::new(0),
            off_cpu: OffCpu::new(),
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

    /// Whether the thread is in the middle of a change, which a handler of a synchronous signal may
    /// have interrupted.
    pub(crate) fn is_busy(&self) -> bool {
        self.busy.get() > 0
    }

    pub(crate) fn set_busy(&self, more: bool) {
        let busy = self.busy.get();
        self.busy.set(if more { busy + 1 } else { busy - 1 });
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
        unsafe { (*self.record.get()).untimed_calls += 1 };
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
        self.ask_at_end();
        // SAFETY: as in `count_untimed`.
        unsafe {
            (*self.record.get()).end_ticks = clock::now();
            (*self.record.get()).state = THREAD_ENDED;
        }
    }

    /// Adds samples to those that it is known of what they cost, in ticks.
    pub(crate) fn note_samples(&self, samples: u64, ticks: u64) {
        // SAFETY: as in `count_untimed`.
        unsafe {
            (*self.record.get()).samples += samples;
            (*self.record.get()).samples_ticks += ticks;
        }
    }

    /// Adds what the slow path took before a call, in ticks.
    pub(crate) fn note_slow(&self, ticks: u64) {
        let record = self.record.get();
        if !record.is_null() {
            // SAFETY: as in `count_untimed`.
            unsafe { (*record).slow_ticks += ticks };
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
        self.begin_asking(record);
        // SAFETY: as above.
        unsafe { AtomicU32::from_ptr(&raw mut (*record).state) }
            .store(THREAD_LIVE, Ordering::Release);
        true
    }

    fn first_table(&self) -> *mut crate::tree::Entry {
        let page = &raw const *self as usize;
        (page + PAGE - TABLE_LEN) as *mut crate::tree::Entry
    }
}

const TABLE_LEN: usize = crate::tree::FIRST_ENTRIES * size_of::<crate::tree::Entry>();
const _: () = assert!(size_of::<Thread>() + TABLE_LEN <= PAGE);

/// Makes the calling thread's [`Thread`]. Signals are blocked.
fn create(origin: &Origin) -> *mut Thread {
    let page = pages::take_wiped();
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
        thread.write(Thread::new(Stack::of_thread(origin)));
        if !(*thread).enroll(origin) {
            pages::give_back_wiped(page);
            give_back_segment(segment);
            return ptr::null_mut();
        }
        first_segment(segment, thread, (*thread).tree.root.get());
        (*thread).counts.set(sampling::take());
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
    // SAFETY: it was just made, with a root.
    let (counts, root) = unsafe { ((*thread).counts.get(), (*thread).tree.root.get()) };
    set_current_thread(thread, counts.map_or(no_counts(), ptr::from_ref), root);
    watch_end(thread);
    let thread = known(thread);
    if let Some(thread) = thread.filter(|_| origin.kind != THREAD_MAIN) {
        sampling::expect_threads(thread);
    }
    thread
}

/// A task is about to be made that has its thread data at `thread_pointer`. Who makes one without the C
/// library may give it a few pages of zeros, enough for `errno`, or a copy of what this thread has; the
/// hook's words there must be those of a thread that is not recorded. Any others are the dynamic
/// linker's, or no thread data at all.
pub(crate) fn expect_foreign(thread: &Thread, thread_pointer: usize) {
    let Some((found, counts)) = arch::thread_at(thread_pointer) else { return };
    if (found.is_null() && counts.is_null()) || ptr::eq(found, thread) {
        arch::set_thread_at(thread_pointer, ENDED.0.get(), no_counts());
        recording::unseen(Lost::Thread);
    }
}

/// The calling thread is not recorded any more.
pub(crate) fn leave() {
    forget();
    recording::unseen(Lost::Thread);
}

/// The calling thread's [`Thread`], made now if it has none and has not ended.
pub(crate) fn current_or_adopt() -> Option<&'static Thread> {
    match current() {
        Some(thread) if thread.is_wiped() => {
            process::notice_fork();
            return current();
        }
        Some(thread) => return Some(thread),
        // A fork's child that has not been noticed yet may make threads.
        None => process::notice_fork(),
    }
    if !recording::is_open() || recording::stopped() || has_ended() {
        return None;
    }
    let _signals = SignalsBlocked::new();
    register(&found::origin())
}
