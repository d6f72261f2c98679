//! How threads end: noticed by a destructor of thread-specific data, after all others.

use core::ffi::{CStr, c_void};
use core::ptr;
use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use chase_format::layout::NONE;

use super::start::set_get_stack_size;
use super::{Thread, current, no_thread};
use crate::arch::set_current_thread;
use crate::frames::SEGMENT;
use crate::pages;
use crate::signals::SignalsBlocked;

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
pub(super) const DESTRUCTOR_ROUNDS: u32 = 4;

/// Arranges for the end of threads to be noticed. `find` looks a function of the C library up.
pub(crate) fn watch_ends(find: impl Fn(&CStr) -> usize) {
    set_get_stack_size(find(c"pthread_attr_getstacksize"));
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

pub(super) fn watch_end(thread: *const Thread) {
    set_specific(thread.cast());
}

pub(super) fn has_ended() -> bool {
    let (key, get) = (KEY.load(Ordering::Acquire), GET_SPECIFIC.load(Ordering::Relaxed));
    if key == NONE {
        return false;
    }
    // SAFETY: the function is the C library's, of this type; the key exists.
    let get: GetSpecific = unsafe { core::mem::transmute(get) };
    // SAFETY: as above.
    unsafe { get(key).cast_const() == ENDED }
}

/// The calling thread has no [`Thread`] from now on, and gets none.
pub(super) fn forget() {
    set_specific(ENDED);
    set_current_thread(no_thread());
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
    forget();
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
