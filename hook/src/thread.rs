//! What the hook knows of a thread: its shadow stack, its tree, its record.
//!
//! A thread gets its [`Thread`] when it starts (its creation was seen), at its first call (it was
//! not), or never (no memory, no room); until then, and after its end, it has [`NO_THREAD`], whose
//! shadow stack is full, so that every call takes the slow path.

use core::cell::UnsafeCell;
use core::ffi::{CStr, c_void};
use core::ptr;
use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use chase_format::layout::{
    NONE, Node, THREAD_CREATED, THREAD_ENDED, THREAD_FOUND, THREAD_LIVE, THREAD_MAIN, ThreadRecord,
};

use crate::arch::{current_thread, set_current_thread};
use crate::frames::{SEGMENT, first_segment};
use crate::lock::Lock;
use crate::recording::Lost;
use crate::signals::SignalsBlocked;
use crate::stack::Stack;
use crate::tree::{Tree, reference};
use crate::{clock, pages, recording, sys};

/// One thread, in a page of its own together with its first table.
#[repr(C, align(64))]
pub(crate) struct Thread {
    /// Where the next frame goes. The call path claims and releases by single instructions.
    pub(crate) top: AtomicUsize,
    pub(crate) tree: Tree,
    pub(crate) stack: Stack,
    /// When the latest `longjmp` was made; 0 for none since the latest exception.
    pub(crate) last_jump_ticks: u64,
    /// What [`crate::loading`] and [`crate::process`] have to do at the next call.
    pub(crate) pending: Pending,
    record: *mut ThreadRecord,
    destructor_rounds: u32,
    /// How many [`SignalsBlocked`] of this thread there are.
    busy: u32,
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
    /// It has not been entered yet.
    pub(crate) entering: bool,
    /// How often it was looked for in vain.
    pub(crate) tries: u32,
    /// A fork may have happened behind the C library's back.
    pub(crate) fork: bool,
}

impl Pending {
    pub(crate) const NONE: Self =
        Self { load_sp: 0, outer_sp: 0, global: false, entering: false, tries: 0, fork: false };
}

#[repr(transparent)]
pub(crate) struct NoThread(UnsafeCell<Thread>);
// SAFETY: it is never written: its `top` is 0, so nothing is claimed from it.
unsafe impl Sync for NoThread {}

/// Stands for the thread that has none.
pub(crate) static NO_THREAD: NoThread = NoThread(UnsafeCell::new(Thread {
    top: AtomicUsize::new(0),
    tree: Tree::new(NONE, ptr::null_mut()),
    stack: Stack::unknown(),
    last_jump_ticks: 0,
    pending: Pending::NONE,
    record: ptr::null_mut(),
    destructor_rounds: 0,
    busy: 0,
}));

/// Address of [`NO_THREAD`].
pub(crate) fn no_thread() -> *mut Thread {
    NO_THREAD.0.get()
}

/// How a thread came to be.
pub(crate) struct Origin {
    pub(crate) kind: u32,
    pub(crate) start_routine: usize,
    pub(crate) argument: usize,
    pub(crate) creation_site: usize,
    pub(crate) creator: u32,
    /// End of the thread's own stack, for one whose creation was seen.
    pub(crate) stack_end: usize,
}

impl Origin {
    pub(crate) const MAIN: Self = Self::without_start(THREAD_MAIN);
    const FOUND: Self = Self::without_start(THREAD_FOUND);

    const fn without_start(kind: u32) -> Self {
        Self { kind, start_routine: 0, argument: 0, creation_site: 0, creator: NONE, stack_end: 0 }
    }
}

impl Thread {
    pub(crate) fn index(&self) -> u32 {
        self.tree.owner
    }

    /// Whether the thread is gone; its memory stays if a suspended call still refers to it.
    pub(crate) fn has_ended(&self) -> bool {
        self.destructor_rounds >= DESTRUCTOR_ROUNDS
    }

    /// Whether the thread is in the middle of a change, which a handler of a synchronous signal may
    /// have interrupted.
    pub(crate) fn is_busy(&self) -> bool {
        self.busy > 0
    }

    pub(crate) fn set_busy(&mut self, more: bool) {
        self.busy = if more { self.busy + 1 } else { self.busy - 1 };
    }

    /// Records a completed call of `ticks` outside the call path.
    pub(crate) fn record(&mut self, node: *mut Node, ticks: u64) {
        let may_add_page = !self.is_busy();
        let _signals = SignalsBlocked::new();
        self.tree.record(node, ticks, may_add_page);
    }

    /// Counts a call of this thread that was not recorded.
    pub(crate) fn count_untimed(&mut self) {
        // SAFETY: the record is this thread's own, in the mapping.
        unsafe { (*self.record).untimed_calls += 1 };
    }

    /// Sends the thread's next call through the slow path, to do `pending`.
    pub(crate) fn defer(&mut self, pending: Pending) {
        self.pending = pending;
        self.tree.close();
    }

    /// Nothing is pending any more.
    pub(crate) fn settle(&mut self) {
        self.pending = Pending::NONE;
        self.tree.open();
    }

    /// Puts the thread's end into the recording, as of now.
    pub(crate) fn stamp_end(&mut self) {
        // SAFETY: as in `count_untimed`.
        unsafe {
            (*self.record).name = sys::thread_name();
            (*self.record).end_ticks = clock::now();
            (*self.record).state = THREAD_ENDED;
        }
    }

    /// Puts the thread's name into the recording.
    pub(crate) fn note_name(&mut self) {
        // SAFETY: as in `count_untimed`.
        unsafe { (*self.record).name = sys::thread_name() };
    }

    /// Enters the thread into the (new) recording: a record, a root.
    pub(crate) fn enroll(&mut self, origin: &Origin) -> bool {
        let Some((record, index)) = recording::thread_record() else { return false };
        self.tree.owner = index;
        if !self.tree.plant() {
            return false;
        }
        self.record = record;
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
            (*record).root_ref = reference(self.tree.root);
            (*record).name = sys::thread_name();
            AtomicU32::from_ptr(&raw mut (*record).state).store(THREAD_LIVE, Ordering::Release);
        }
        true
    }

    /// A fresh tree, after a fork; the table that the old one had is cleared and kept.
    pub(crate) fn restart_tree(&mut self) {
        let table = self.first_table();
        if !self.tree.root.is_null() {
            self.tree.release();
        }
        // SAFETY: the first table is in this thread's page, behind the `Thread`.
        unsafe { ptr::write_bytes(table.cast::<u8>(), 0, TABLE_LEN) };
        self.tree = Tree::new(NONE, table);
    }

    fn first_table(&mut self) -> *mut crate::tree::Entry {
        let page = &raw mut *self as usize;
        (page + SEGMENT - TABLE_LEN) as *mut crate::tree::Entry
    }
}

const TABLE_LEN: usize = crate::tree::FIRST_ENTRIES * size_of::<crate::tree::Entry>();
const _: () = assert!(size_of::<Thread>() + TABLE_LEN <= SEGMENT);

/// Makes the calling thread's [`Thread`]. Signals are blocked.
fn create(origin: &Origin) -> *mut Thread {
    let (page, segment) = (pages::take(SEGMENT), pages::take(SEGMENT));
    if page.is_null() || segment.is_null() {
        return ptr::null_mut();
    }
    let thread = page.cast::<Thread>();
    // SAFETY: both pages are ours, zeroed and large enough.
    unsafe {
        thread.write(Thread {
            top: AtomicUsize::new(0),
            tree: Tree::new(NONE, ptr::null_mut()),
            stack: Stack::of_thread(origin),
            last_jump_ticks: 0,
            pending: Pending::NONE,
            record: ptr::null_mut(),
            destructor_rounds: 0,
            busy: 0,
        });
        (*thread).restart_tree();
        if !(*thread).enroll(origin) {
            pages::give_back(page, SEGMENT);
            pages::give_back(segment, SEGMENT);
            return ptr::null_mut();
        }
        first_segment(segment.cast(), thread, (*thread).tree.root);
    }
    thread
}

/// Gives the calling thread a [`Thread`], if that can be.
pub(crate) fn register(origin: &Origin) -> Option<&'static mut Thread> {
    let _signals = SignalsBlocked::new();
    let thread = create(origin);
    if thread.is_null() {
        recording::unseen(Lost::Thread);
        return None;
    }
    set_current_thread(thread);
    watch_end(thread);
    // SAFETY: it was just made, and only its own thread uses it.
    Some(unsafe { &mut *thread })
}

/// The calling thread's [`Thread`], made now if it has none and has not ended.
pub(crate) fn current_or_adopt() -> Option<&'static mut Thread> {
    let current = current_thread();
    if current != no_thread() {
        // SAFETY: a thread other than `NO_THREAD` is the calling thread's own.
        return Some(unsafe { &mut *current });
    }
    if !recording::is_open() || recording::stopped() || has_ended() {
        return None;
    }
    register(&Origin::FOUND)
}

// ---- creation -----------------------------------------------------------------------------------

/// What a new thread is told by its creator.
#[repr(C)]
pub(crate) struct Start {
    routine: usize,
    argument: usize,
    creation_site: usize,
    creator: u32,
    next: *mut Start,
}

struct Starts {
    lock: Lock,
    free: UnsafeCell<*mut Start>,
}
// SAFETY: `free` is touched only by who holds the lock.
unsafe impl Sync for Starts {}
static STARTS: Starts = Starts { lock: Lock::new(), free: UnsafeCell::new(ptr::null_mut()) };

/// Before a fork, in the forking thread: nobody else is in the middle of a change.
pub(crate) fn before_fork() {
    STARTS.lock.acquire();
}

/// After a fork, in the parent.
pub(crate) fn after_fork_in_parent() {
    STARTS.lock.release();
}

/// After a fork, in the child, which is the only thread.
pub(crate) fn after_fork_in_child() {
    STARTS.lock.reset();
}

/// Notes how a thread is about to be created; null if there is no memory.
pub(crate) fn prepare(
    routine: usize,
    argument: usize,
    creation_site: usize,
    creator: u32,
) -> *mut Start {
    let _signals = SignalsBlocked::new();
    let _held = STARTS.lock.hold();
    // SAFETY: the lock is held; entries of the list are free.
    unsafe {
        let free = STARTS.free.get();
        if (*free).is_null() {
            let page = pages::take(SEGMENT).cast::<Start>();
            if page.is_null() {
                return page;
            }
            for i in 0..SEGMENT / size_of::<Start>() {
                (*page.add(i)).next = *free;
                *free = page.add(i);
            }
        }
        let start = *free;
        *free = (*start).next;
        start.write(Start { routine, argument, creation_site, creator, next: ptr::null_mut() });
        start
    }
}

/// The application's start routine and its argument.
#[repr(C)]
pub(crate) struct Begun {
    routine: usize,
    argument: usize,
}

/// The first thing a thread does whose creation was seen.
///
/// # Safety
/// `start` is from [`prepare`], and this is its only use; the start routine's stack ends at
/// `stack_end`.
pub(crate) unsafe extern "C" fn begin(start: *mut Start, stack_end: usize) -> Begun {
    let origin;
    {
        let _signals = SignalsBlocked::new();
        let _held = STARTS.lock.hold();
        // SAFETY: the caller vouches for `start`; the lock is held.
        unsafe {
            origin = Origin {
                kind: THREAD_CREATED,
                start_routine: (*start).routine,
                argument: (*start).argument,
                creation_site: (*start).creation_site,
                creator: (*start).creator,
                stack_end,
            };
            (*start).next = *STARTS.free.get();
            *STARTS.free.get() = start;
        }
    }
    if recording::is_open() && !recording::stopped() {
        register(&origin);
    }
    Begun { routine: origin.start_routine, argument: origin.argument }
}

// ---- end ----------------------------------------------------------------------------------------

/// The C library's functions for thread-specific data, by which a thread's end is noticed.
type CreateKey = unsafe extern "C" fn(*mut u32, Option<unsafe extern "C" fn(*mut c_void)>) -> i32;
type SetSpecific = unsafe extern "C" fn(u32, *const c_void) -> i32;
type GetSpecific = unsafe extern "C" fn(u32) -> *mut c_void;

static KEY: AtomicU32 = AtomicU32::new(NONE);
static SET_SPECIFIC: AtomicUsize = AtomicUsize::new(0);
static GET_SPECIFIC: AtomicUsize = AtomicUsize::new(0);

/// Value of the key in a thread that has ended.
const ENDED: *const c_void = ptr::without_provenance(1);
/// Keys below this one are stored in the thread itself; for others the C library would allocate.
const INLINE_KEYS: u32 = 32;
/// Rounds of destructors that the C library runs; the last is ours, after all others.
const DESTRUCTOR_ROUNDS: u32 = 4;

/// Arranges for the end of threads to be noticed. `find` looks a function of the C library up.
pub(crate) fn watch_ends(find: impl Fn(&CStr) -> usize) {
    let create = find(c"pthread_key_create");
    let set = find(c"pthread_setspecific");
    let get = find(c"pthread_getspecific");
    if create == 0 || set == 0 || get == 0 {
        return;
    }
    // SAFETY: the function is the C library's, of this type.
    let create: CreateKey = unsafe { core::mem::transmute(create) };
    let mut key = NONE;
    // SAFETY: as above; the destructor stays loaded, as the library is never unloaded.
    if unsafe { create(&raw mut key, Some(end)) } == 0 && key < INLINE_KEYS {
        SET_SPECIFIC.store(set, Ordering::Relaxed);
        GET_SPECIFIC.store(get, Ordering::Relaxed);
        KEY.store(key, Ordering::Release);
    }
}

fn set_specific(value: *const c_void) {
    let (key, set) = (KEY.load(Ordering::Acquire), SET_SPECIFIC.load(Ordering::Relaxed));
    if key != NONE {
        // SAFETY: the function is the C library's, of this type; the key exists.
        let set: SetSpecific = unsafe { core::mem::transmute(set) };
        // SAFETY: as above.
        unsafe { set(key, value) };
    }
}

fn watch_end(thread: *const Thread) {
    set_specific(thread.cast());
}

fn has_ended() -> bool {
    let (key, get) = (KEY.load(Ordering::Acquire), GET_SPECIFIC.load(Ordering::Relaxed));
    if key == NONE {
        return false;
    }
    // SAFETY: the function is the C library's, of this type; the key exists.
    let get: GetSpecific = unsafe { core::mem::transmute(get) };
    // SAFETY: as above.
    unsafe { get(key).cast_const() == ENDED }
}

/// Destructor of the key.
unsafe extern "C" fn end(value: *mut c_void) {
    let current = current_thread();
    if value.cast_const() == ENDED || current == no_thread() {
        return;
    }
    // SAFETY: a thread other than `NO_THREAD` is the calling thread's own.
    let thread = unsafe { &mut *current };
    thread.abandon_own_stack();
    thread.stamp_end();
    thread.destructor_rounds += 1;
    if thread.destructor_rounds < DESTRUCTOR_ROUNDS {
        return set_specific(current.cast());
    }
    // A coroutine that is suspended inside a call may go on elsewhere: its frame stays.
    let idle = {
        let _signals = SignalsBlocked::new();
        thread.release_segments()
    };
    set_specific(ENDED);
    set_current_thread(no_thread());
    if idle {
        let _signals = SignalsBlocked::new();
        thread.give_back();
    }
}

impl Thread {
    /// Gives its memory back. Nothing refers to it any more.
    fn give_back(&mut self) {
        let first = (self.top.load(Ordering::Relaxed) & !(SEGMENT - 1)) as *mut u8;
        self.tree.release();
        pages::give_back(first, SEGMENT);
        pages::give_back((&raw mut *self).cast(), SEGMENT);
    }
}
