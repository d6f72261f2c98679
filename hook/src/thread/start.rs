//! How threads start: what the creator tells the new thread, and what that does first.

use core::cell::UnsafeCell;
use core::ptr;
use core::sync::atomic::{AtomicUsize, Ordering};

use chase_format::layout::{OriginRecord, THREAD_CREATED};

use super::{Origin, Thread, creation, current, register};
use crate::cost::Later;
use crate::lock::Lock;
use crate::pages::PAGE;
use crate::signals::SignalsBlocked;
use crate::{pages, process, recording};

/// What a new thread is told by its creator.
#[repr(C)]
pub(crate) struct Start {
    routine: usize,
    argument: usize,
    creation_site: usize,
    stack_size: usize,
    creator: u32,
    next: *mut Start,
    noted: OriginRecord,
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
pub(crate) struct Plan<'a> {
    pub(crate) routine: usize,
    pub(crate) argument: usize,
    pub(crate) creation_site: usize,
    pub(crate) creator: &'a Thread,
    /// Stack pointer at the call.
    pub(crate) sp: usize,
    /// The `pthread_attr_t`, or null.
    pub(crate) attributes: usize,
}

/// Notes how a thread is about to be created; null if there is no memory.
pub(crate) fn prepare(plan: &Plan<'_>) -> *mut Start {
    let _cost = Later::begin();
    let stack_size = stack_size(plan.attributes);
    let _signals = SignalsBlocked::new();
    let start = take();
    if start.is_null() {
        return start;
    }
    // SAFETY: the entry is ours, and all-zero is a valid one.
    unsafe {
        (*start).routine = plan.routine;
        (*start).argument = plan.argument;
        (*start).creation_site = plan.creation_site;
        (*start).stack_size = stack_size;
        (*start).creator = plan.creator.index();
        creation::note(plan, &mut (*start).noted);
    }
    start
}

/// An entry that is free; null if there is no memory. Signals are blocked.
fn take() -> *mut Start {
    let _held = STARTS.lock.hold();
    // SAFETY: the lock is held; entries of the list are free.
    unsafe {
        let free = STARTS.free.get();
        if (*free).is_null() {
            let page = pages::take(PAGE).cast::<Start>();
            if page.is_null() {
                return page;
            }
            for i in 0..PAGE / size_of::<Start>() {
                (*page.add(i)).next = *free;
                *free = page.add(i);
            }
        }
        let start = *free;
        *free = (*start).next;
        start
    }
}

type GetStackSize = unsafe extern "C" fn(usize, *mut usize) -> i32;
static GET_STACK_SIZE: AtomicUsize = AtomicUsize::new(0);

/// Notes the C library's `pthread_attr_getstacksize`.
pub(super) fn set_get_stack_size(address: usize) {
    GET_STACK_SIZE.store(address, Ordering::Relaxed);
}

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
    process::notice_fork();
    let _cost = Later::begin();
    let _signals = SignalsBlocked::new();
    // SAFETY: the caller vouches for `start`, which is this thread's until it is given back.
    let start_data = unsafe { &*start };
    let origin = Origin {
        kind: THREAD_CREATED,
        start_routine: start_data.routine,
        argument: start_data.argument,
        creation_site: start_data.creation_site,
        creator: start_data.creator,
        stack: (stack_end, start_data.stack_size),
    };
    if recording::is_open()
        && !recording::stopped()
        && current().is_none()
        && let Some(thread) = register(&origin)
    {
        creation::write(&start_data.noted, thread.index());
    }
    let _held = STARTS.lock.hold();
    // SAFETY: the lock is held, and the entry is not used any more.
    unsafe {
        (*start).next = *STARTS.free.get();
        *STARTS.free.get() = start;
    }
    Begun { routine: origin.start_routine, argument: origin.argument }
}
