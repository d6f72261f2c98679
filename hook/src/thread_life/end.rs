//! How threads end: noticed by a destructor of thread-specific data, after all other destructors.

use core::ffi::c_void;
use core::sync::atomic::Ordering;

use chase_format::layout::NONE;

use super::start::set_get_stack_size;
use super::{conditions, found};
use crate::cost::Later;
use crate::segments::{give_back_segment, lowest_segment};
use crate::signals::SignalsBlocked;
use crate::thread::{Thread, current, forget, set_key, set_specific};
use crate::{loading, pages, process};

/// The C library's functions for thread-specific data, by which a thread's end is noticed.
type CreateKey = unsafe extern "C" fn(*mut u32, Option<unsafe extern "C" fn(*mut c_void)>) -> i32;
type DeleteKey = unsafe extern "C" fn(u32) -> i32;

/// Keys below this one are stored in the thread itself; for others the C library allocates memory.
const INLINE_KEYS: u32 = 32;

/// Arranges for the end of threads to be noticed, and learns of the C library what threads will need.
pub(crate) fn watch_ends() {
    set_get_stack_size(loading::find(c"pthread_attr_getstacksize"));
    found::learn();
    conditions::learn();
    let set = loading::find(c"pthread_setspecific");
    // SAFETY: the functions are the C library's, of these types.
    let (create, delete) = unsafe {
        (
            loading::function::<CreateKey>(c"pthread_key_create", None),
            loading::function::<DeleteKey>(c"pthread_key_delete", None),
        )
    };
    let (Some(create), Some(delete), 1..) = (create, delete, set) else { return };
    // A second C library, in another namespace, has its own keys, but stores them at the same places in the thread.
    // The last inline key is the one that it uses last.
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
        set_key(chosen, set);
    }
}

/// The destructor of the key.
unsafe extern "C" fn end(value: *mut c_void) {
    if current().is_some_and(Thread::is_wiped) {
        process::notice_fork();
    }
    let Some(thread) = current() else { return };
    let _cost = Later::begin();
    thread.abandon_own_stack();
    // A call that a handler makes after the stamp would be recorded after the thread's end.
    let signals = SignalsBlocked::new();
    thread.ask_between();
    thread.stamp_end();
    thread.destructor_rounds.set(thread.destructor_rounds.get() + 1);
    if !thread.has_ended() {
        return set_specific(value);
    }
    thread.note_cpu();
    thread.leave_events();
    // A coroutine that is suspended inside a call may continue elsewhere: its frame stays.
    let idle = thread.release_segments();
    if idle && thread.has_abandoned_calls.get() {
        thread.tree.close_samples();
    }
    forget();
    // It refers to the thread, whose memory another thread may get from now on.
    drop(signals);
    if idle {
        let _signals = SignalsBlocked::new();
        give_back(thread);
    }
}

/// Frees the memory of a thread that is not recorded any more. Returns false if calls will return through its frames.
/// Signals are blocked.
pub(crate) fn release(thread: &Thread) -> bool {
    let idle = thread.release_segments();
    if idle {
        give_back(thread);
    }
    idle
}

/// Frees the memory of a thread to which nothing refers any more.
fn give_back(thread: &Thread) {
    // SAFETY: the thread has a segment.
    let first = unsafe { lowest_segment(thread.head.top.load(Ordering::Relaxed)) };
    thread.tree.release();
    give_back_segment(first);
    pages::give_back_wiped((&raw const *thread).cast_mut().cast());
}
