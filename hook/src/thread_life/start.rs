//! How threads start: what the creator passes to the new thread, and what that does first.

use core::sync::atomic::{AtomicUsize, Ordering};

use chase_format::layout::{NONE, THREAD_CREATED};

use super::creation::{self, Plan};
use super::{choice, found};
use crate::cost::Later;
use crate::signals::SignalsBlocked;
use crate::thread::{
    Origin, Start, Thread, current, give_back_start, has_ended, register, take_start,
};
use crate::{process, recording};

/// Prepares the data for a thread that is about to be created; returns null if there is no memory.
pub(crate) fn prepare(plan: &Plan<'_>) -> *mut Start {
    let _cost = Later::begin();
    let stack_size = stack_size(plan.attributes);
    let _signals = SignalsBlocked::new();
    let start = take_start();
    if start.is_null() {
        return start;
    }
    // SAFETY: the entry is ours, and all zeros is a valid one.
    unsafe {
        (*start).origin = Origin {
            kind: THREAD_CREATED,
            start_routine: plan.routine,
            argument: plan.argument,
            creation_site: plan.creation_site,
            creator: if plan.creator.is_left_out() { NONE } else { plan.creator.index() },
            stack: (0, stack_size),
        };
        creation::describe(plan, &mut (*start).noted);
        (*start).is_wanted = choice::is_new_wanted(plan.routine, &(*start).noted);
    }
    start
}

type GetStackSize = unsafe extern "C" fn(usize, *mut usize) -> i32;
static GET_STACK_SIZE: AtomicUsize = AtomicUsize::new(0);

/// Stores the address of the C library's `pthread_attr_getstacksize`.
pub(crate) fn set_get_stack_size(address: usize) {
    GET_STACK_SIZE.store(address, Ordering::Relaxed);
}

/// Returns the stack size of a thread with these attributes; 0 if it can't be found out.
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

/// Begins to record a thread whose creation was seen, as the first thing that it does. Returns what it is to run.
///
/// # Safety
/// `start` is from [`prepare`] and not used again; the start routine's stack ends at `stack_end`.
pub(crate) unsafe extern "C" fn begin(start: *mut Start, stack_end: usize) -> Begun {
    process::notice_fork();
    let _cost = Later::begin();
    let _signals = SignalsBlocked::new();
    // SAFETY: the caller vouches for `start`, which is this thread's until it is given back.
    let Start { origin, is_wanted, noted, .. } = unsafe { &*start };
    let origin = Origin { stack: (stack_end, origin.stack.1), ..*origin };
    if recording::is_open()
        && !recording::stopped()
        && current().is_none()
        && let Some(thread) = register(&origin)
    {
        if *is_wanted {
            creation::write(noted, thread.index());
        } else {
            thread.leave_out();
        }
    }
    give_back_start(start);
    Begun { routine: origin.start_routine, argument: origin.argument }
}

/// Returns the calling thread's [`Thread`], which it makes if there is none and the thread has not ended.
pub(crate) fn current_or_adopt() -> Option<&'static Thread> {
    match current() {
        Some(thread) if thread.is_wiped() => {
            process::notice_fork();
            return current();
        }
        Some(thread) => return Some(thread),
        // Threads can be made in a fork's child before the fork was noticed.
        None => process::notice_fork(),
    }
    if !recording::is_open() || recording::stopped() || has_ended() {
        return None;
    }
    let _signals = SignalsBlocked::new();
    let origin = found::origin();
    let thread = register(&origin)?;
    choice::leave_out_unwanted(thread, &origin);
    creation::note_found(origin.argument, thread);
    Some(thread)
}
