//! Private memory for shadow stacks, threads and tables: whole pages, zeroed, kept when given back.

use core::cell::UnsafeCell;
use core::ptr;

use crate::lock::Lock;
use crate::sys;

const PAGE: usize = 4096;
/// Single pages are carved from mappings of this size, so that a thousand threads are no thousand
/// mappings.
const SLAB: usize = 64 * PAGE;

struct Pages {
    lock: Lock,
    state: UnsafeCell<State>,
}

struct State {
    free: *mut u8,
    slab: *mut u8,
    slab_left: usize,
    names: *mut u8,
    names_left: usize,
}

// SAFETY: `state` is touched only by who holds `lock`.
unsafe impl Sync for Pages {}

static PAGES: Pages = Pages {
    lock: Lock::new(),
    state: UnsafeCell::new(State {
        free: ptr::null_mut(),
        slab: ptr::null_mut(),
        slab_left: 0,
        names: ptr::null_mut(),
        names_left: 0,
    }),
};

/// `len` bytes, zeroed and aligned to a page; null if there is no memory. Signals are blocked.
pub(crate) fn take(len: usize) -> *mut u8 {
    let len = len.next_multiple_of(PAGE);
    if len > PAGE {
        return sys::map_anonymous(len);
    }
    let _held = PAGES.lock.hold();
    // SAFETY: the lock is held; free pages are linked by their first word.
    unsafe {
        let state = &mut *PAGES.state.get();
        if !state.free.is_null() {
            let page = state.free;
            state.free = *page.cast::<*mut u8>();
            ptr::write_bytes(page, 0, PAGE);
            return page;
        }
        if state.slab_left == 0 {
            state.slab = sys::map_anonymous(SLAB);
            if state.slab.is_null() {
                return ptr::null_mut();
            }
            state.slab_left = SLAB;
        }
        state.slab_left -= PAGE;
        state.slab.add(state.slab_left)
    }
}

/// Takes back what [`take`] gave for the same `len`. Signals are blocked.
pub(crate) fn give_back(memory: *mut u8, len: usize) {
    let len = len.next_multiple_of(PAGE);
    if len > PAGE {
        return sys::unmap(memory, len);
    }
    let _held = PAGES.lock.hold();
    // SAFETY: the lock is held, and nobody uses the page any more.
    unsafe {
        let state = &mut *PAGES.state.get();
        *memory.cast::<*mut u8>() = state.free;
        state.free = memory;
    }
}

/// Before a fork, in the forking thread: nobody else is in the middle of a change.
pub(crate) fn before_fork() {
    PAGES.lock.acquire();
}

/// After a fork, in the parent.
pub(crate) fn after_fork_in_parent() {
    PAGES.lock.release();
}

/// After a fork, in the child, which is the only thread.
pub(crate) fn after_fork_in_child() {
    PAGES.lock.reset();
}

/// `len` bytes that are never given back, for names; null if there is no memory.
pub(crate) fn keep(len: usize) -> *mut u8 {
    const BLOCK: usize = 16 * PAGE;
    if len > BLOCK {
        return sys::map_anonymous(len);
    }
    let _held = PAGES.lock.hold();
    // SAFETY: the lock is held.
    unsafe {
        let state = &mut *PAGES.state.get();
        if state.names_left < len {
            state.names = sys::map_anonymous(BLOCK);
            if state.names.is_null() {
                state.names_left = 0;
                return ptr::null_mut();
            }
            state.names_left = BLOCK;
        }
        let memory = state.names;
        state.names = memory.add(len);
        state.names_left -= len;
        memory
    }
}
