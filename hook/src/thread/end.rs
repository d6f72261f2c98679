//! How threads end: noticed by a destructor of thread-specific data, after all others.

use core::ffi::{CStr, c_void};
use core::ptr;
use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use chase_format::layout::NONE;

use super::start::set_get_stack_size;
use super::{ENDED, Thread, current, found};
use crate::arch::set_current_thread;
use crate::cost::Later;
use crate::frames::give_back_segment;
use crate::sampling::{self, no_counts};
use crate::signals::SignalsBlocked;
use crate::{pages, process};

/// The C library's functions for thread-specific data, by which a thread's end is noticed.
type CreateKey = unsafe extern "C" fn(*mut u32, Option<unsafe extern "C" fn(*mut c_void)>) -> i32;
type DeleteKey = unsafe extern "C" fn(u32) -> i32;
type SetSpecific = unsafe extern "C" fn(u32, *const c_void) -> i32;

static KEY: AtomicU32 = AtomicU32::new(NONE);
static SET_SPECIFIC: AtomicUsize = AtomicUsize::new(0);

/// Keys below this one are stored in the thread itself; for others the C library would allocate.
const INLINE_KEYS: u32 = 32;
/// Rounds of destructors that the C library runs; the last is ours, after all others.
pub(super) const DESTRUCTOR_ROUNDS: u32 = 4;

/// Arranges for the end of threads to be noticed. `find` looks a function of the C library up.
pub(crate) fn watch_ends(find: impl Fn(&CStr) -> usize) {
    set_get_stack_size(find(c"pthread_attr_getstacksize"));
    found::learn(&find);
    let create = find(c"pthread_key_create");
    let delete = find(c"pthread_key_delete");
    let set = find(c"pthread_setspecific");
    if create == 0 || delete == 0 || set == 0 {
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

pub(super) fn watch_end(thread: *const Thread) {
    set_specific(thread.cast());
}

/// The calling thread has no [`Thread`] from now on, and gets none.
pub(super) fn forget() {
    let thread = current();
    set_specific(ptr::null());
    set_current_thread(ENDED.0.get(), no_counts(), ptr::null());
    if let Some(thread) = thread {
        thread.stop_sampling();
        let _signals = SignalsBlocked::new();
        if let Some(counts) = thread.counts.take() {
            sampling::give_back(counts);
        }
    }
}

/// Destructor of the key.
unsafe extern "C" fn end(value: *mut c_void) {
    if current().is_some_and(Thread::is_wiped) {
        process::notice_fork();
    }
    let Some(thread) = current() else { return };
    let _cost = Later::begin();
    thread.abandon_own_stack();
    thread.stamp_end();
    thread.destructor_rounds.set(thread.destructor_rounds.get() + 1);
    if !thread.has_ended() {
        return set_specific(value);
    }
    thread.note_cpu();
    // A coroutine that is suspended inside a call may go on elsewhere: its frame stays.
    let idle = {
        let _signals = SignalsBlocked::new();
        thread.release_segments()
    };
    if idle && thread.was_left.get() {
        thread.tree.close_samples();
    }
    forget();
    if idle {
        let _signals = SignalsBlocked::new();
        thread.give_back();
    }
}

impl Thread {
    /// Gives its memory back. Nothing refers to it any more.
    fn give_back(&self) {
        let first = self.lowest_segment();
        self.tree.release();
        give_back_segment(first);
        pages::give_back_wiped((&raw const *self).cast_mut().cast());
    }
}
