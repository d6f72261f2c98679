//! What the hook knows of a thread: its shadow stack, its tree, its record.
//!
//! A thread gets its [`Thread`] when it starts (its creation was seen), at its first call (it was
//! not), or never (no memory, no room); until then, and after its end, it has [`NO_THREAD`], whose
//! shadow stack is full, so that every call takes the slow path.

use core::cell::{Cell, UnsafeCell};
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
    pub(crate) last_jump_ticks: Cell<u64>,
    /// What [`crate::loading`] and [`crate::process`] have to do at the next call.
    pub(crate) pending: Cell<Pending>,
    record: Cell<*mut ThreadRecord>,
    destructor_rounds: Cell<u32>,
    /// Segments of its shadow stack.
    pub(crate) segments: Cell<usize>,
    /// How many [`SignalsBlocked`] of this thread there are.
    busy: Cell<u32>,
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
    /// What is on the stack at `load_sp` as long as it runs.
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

/// Address of [`NO_THREAD`].
pub(crate) fn no_thread() -> *mut Thread {
    NO_THREAD.0.get()
}

/// The thread at `current`, unless it is [`NO_THREAD`].
fn known(current: *mut Thread) -> Option<&'static Thread> {
    // SAFETY: any other is the calling thread's own. It stays until the thread's end, and what
    // changes in it is in cells.
    (current != no_thread()).then(|| unsafe { &*current })
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
            tree: Tree::new(),
            stack,
            last_jump_ticks: Cell::new(0),
            pending: Cell::new(Pending::NONE),
            record: Cell::new(ptr::null_mut()),
            destructor_rounds: Cell::new(0),
            segments: Cell::new(1),
            busy: Cell::new(0),
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
        let may_add_page = !self.is_busy();
        let _signals = SignalsBlocked::new();
        self.tree.record(node, ticks, may_add_page);
    }

    /// Counts a call of this thread that was not recorded.
    pub(crate) fn count_untimed(&self) {
        // SAFETY: the record is this thread's own, in the mapping.
        unsafe { (*self.record.get()).untimed_calls += 1 };
    }

    /// Sends the thread's next call through the slow path, to do `pending`.
    pub(crate) fn defer(&self, pending: Pending) {
        let _signals = SignalsBlocked::new();
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
        // SAFETY: as in `count_untimed`.
        unsafe {
            (*self.record.get()).name = sys::thread_name();
            (*self.record.get()).end_ticks = clock::now();
            (*self.record.get()).state = THREAD_ENDED;
        }
    }

    /// Puts the thread's name into the recording.
    pub(crate) fn note_name(&self) {
        // SAFETY: as in `count_untimed`.
        unsafe { (*self.record.get()).name = sys::thread_name() };
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
            (*record).name = sys::thread_name();
            AtomicU32::from_ptr(&raw mut (*record).state).store(THREAD_LIVE, Ordering::Release);
        }
        true
    }

    fn first_table(&self) -> *mut crate::tree::Entry {
        let page = &raw const *self as usize;
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
        thread.write(Thread::new(Stack::of_thread(origin)));
        if !(*thread).enroll(origin) {
            pages::give_back(page, SEGMENT);
            pages::give_back(segment, SEGMENT);
            return ptr::null_mut();
        }
        first_segment(segment.cast(), thread, (*thread).tree.root.get());
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
    set_current_thread(thread);
    watch_end(thread);
    known(thread)
}

/// The calling thread is not recorded any more.
pub(crate) fn leave() {
    set_specific(ENDED);
    set_current_thread(no_thread());
    recording::unseen(Lost::Thread);
}

/// The calling thread's [`Thread`], made now if it has none and has not ended.
pub(crate) fn current_or_adopt() -> Option<&'static Thread> {
    if let Some(thread) = current() {
        return Some(thread);
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
    stack_size: usize,
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

/// A thread that is about to be created.
pub(crate) struct Plan {
    pub(crate) routine: usize,
    pub(crate) argument: usize,
    pub(crate) creation_site: usize,
    pub(crate) creator: u32,
    /// The `pthread_attr_t`, or null.
    pub(crate) attributes: usize,
}

/// Notes how a thread is about to be created; null if there is no memory.
pub(crate) fn prepare(plan: &Plan) -> *mut Start {
    let stack_size = stack_size(plan.attributes);
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
        start.write(Start {
            routine: plan.routine,
            argument: plan.argument,
            creation_site: plan.creation_site,
            stack_size,
            creator: plan.creator,
            next: ptr::null_mut(),
        });
        start
    }
}

type GetStackSize = unsafe extern "C" fn(usize, *mut usize) -> i32;
static GET_STACK_SIZE: AtomicUsize = AtomicUsize::new(0);

/// Size of the stack of a thread with these attributes; 0 if it can't be known.
fn stack_size(attributes: usize) -> usize {
    // Attributes as `pthread_attr_init` leaves them: the defaults.
    static DEFAULTS: [u64; 16] = [0; 16];
    let attributes = if attributes == 0 { DEFAULTS.as_ptr() as usize } else { attributes };
    let get = GET_STACK_SIZE.load(Ordering::Relaxed);
    if get == 0 {
        return 0;
    }
    // SAFETY: the function is the C library's, of this type.
    let get: GetStackSize = unsafe { core::mem::transmute(get) };
    let mut size = 0;
    // SAFETY: as above; it only reads the attributes, which the application passes to the library.
    if unsafe { get(attributes, &raw mut size) } == 0 { size } else { 0 }
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
                stack: (stack_end, (*start).stack_size),
            };
            (*start).next = *STARTS.free.get();
            *STARTS.free.get() = start;
        }
    }
    if recording::is_open() && !recording::stopped() && current().is_none() {
        register(&origin);
    }
    Begun { routine: origin.start_routine, argument: origin.argument }
}

// ---- end ----------------------------------------------------------------------------------------

/// The C library's functions for thread-specific data, by which a thread's end is noticed.
type CreateKey = unsafe extern "C" fn(*mut u32, Option<unsafe extern "C" fn(*mut c_void)>) -> i32;
type DeleteKey = unsafe extern "C" fn(u32) -> i32;
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
    GET_STACK_SIZE.store(find(c"pthread_attr_getstacksize"), Ordering::Relaxed);
    let create = find(c"pthread_key_create");
    let delete = find(c"pthread_key_delete");
    let set = find(c"pthread_setspecific");
    let get = find(c"pthread_getspecific");
    if create == 0 || delete == 0 || set == 0 || get == 0 {
        return;
    }
    // SAFETY: the function is the C library's, of this type.
    let create: CreateKey = unsafe { core::mem::transmute(create) };
    // SAFETY: as above.
    let delete: DeleteKey = unsafe { core::mem::transmute(delete) };
    // Another C library, in a namespace of its own, has keys of its own, but the same places for
    // them in the thread. The last inline key is the one that it uses last.
    let mut keys = [NONE; INLINE_KEYS as usize];
    for key in &mut keys {
        // SAFETY: as above; the destructor stays loaded, as the library is never unloaded.
        if unsafe { create(&raw mut *key, Some(end)) } != 0 {
            *key = NONE;
        }
    }
    let chosen = keys.into_iter().filter(|&key| key < INLINE_KEYS).max().unwrap_or(NONE);
    for &key in keys.iter().filter(|&&key| key != chosen && key != NONE) {
        // SAFETY: as above; the key was just made.
        unsafe { delete(key) };
    }
    if chosen != NONE {
        SET_SPECIFIC.store(set, Ordering::Relaxed);
        GET_SPECIFIC.store(get, Ordering::Relaxed);
        KEY.store(chosen, Ordering::Release);
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
    let Some(thread) = current().filter(|_| value.cast_const() != ENDED) else { return };
    thread.abandon_own_stack();
    thread.stamp_end();
    thread.destructor_rounds.set(thread.destructor_rounds.get() + 1);
    if !thread.has_ended() {
        return set_specific(value);
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
    fn give_back(&self) {
        let first = (self.top.load(Ordering::Relaxed) & !(SEGMENT - 1)) as *mut u8;
        self.tree.release();
        pages::give_back(first, SEGMENT);
        pages::give_back((&raw const *self).cast_mut().cast(), SEGMENT);
    }
}
