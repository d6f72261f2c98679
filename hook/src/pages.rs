//! Private memory for shadow stacks, threads and tables: whole pages, zeroed. One or two are kept when given
//! back.

use core::cell::UnsafeCell;
use core::ptr;

use crate::lock::Lock;
use crate::{process, sys};

/// Bytes of a page.
pub(crate) const PAGE: usize = 4096;
/// So many pages, and fewer, are carved from mappings of this size, so that a thousand threads are no
/// thousand mappings.
const FEW: usize = 2;
const SLAB: usize = 64 * PAGE;

struct Pages {
    lock: Lock,
    state: UnsafeCell<State>,
}

struct State {
    /// By number of pages less 1.
    blocks: [Blocks; FEW],
    /// Single pages that a fork's child finds zeroed.
    wiped: Blocks,
    names: *mut u8,
    names_left: usize,
}

/// Blocks of equally many pages.
struct Blocks {
    free: *mut u8,
    slab: *mut u8,
    slab_left: usize,
}

// SAFETY: `state` is touched only by who holds `lock`.
unsafe impl Sync for Pages {}

static PAGES: Pages = Pages {
    lock: Lock::new(),
    state: UnsafeCell::new(State {
        blocks: [const { Blocks::NONE }; FEW],
        wiped: Blocks::NONE,
        names: ptr::null_mut(),
        names_left: 0,
    }),
};

/// At least one.
fn whole_pages(len: usize) -> usize {
    len.max(1).next_multiple_of(PAGE)
}

/// `len` bytes, zeroed and aligned to a page, and to two if it takes two; null if there is no memory.
/// Signals are blocked.
pub(crate) fn take(len: usize) -> *mut u8 {
    let len = whole_pages(len);
    let _held = PAGES.lock.hold();
    // SAFETY: the lock is held.
    unsafe {
        let Some(blocks) = Blocks::of(len) else { return sys::map_anonymous(len) };
        blocks.take(len, sys::map_anonymous)
    }
}

/// A page, zeroed, that a fork's child will find zeroed, if the kernel can do that and forks are told from their
/// parents at all; null if there is no memory. Signals are blocked.
pub(crate) fn take_wiped() -> *mut u8 {
    let _held = PAGES.lock.hold();
    // SAFETY: the lock is held.
    let blocks = unsafe { &mut (*PAGES.state.get()).wiped };
    let map = |len| {
        let memory = sys::map_anonymous(len);
        if !memory.is_null() && process::knows_its_memory() {
            let _ = sys::advise(memory, len, libc::MADV_WIPEONFORK);
        }
        memory
    };
    // SAFETY: as above.
    unsafe { blocks.take(PAGE, map) }
}

/// Takes back what [`take_wiped`] gave. Signals are blocked.
pub(crate) fn give_back_wiped(memory: *mut u8) {
    let _held = PAGES.lock.hold();
    // SAFETY: the lock is held, and nobody uses the memory any more. (Of what was free at a fork, its child finds
    // the first page only, which does not lead to others.)
    unsafe {
        let blocks = &mut (*PAGES.state.get()).wiped;
        *memory.cast::<*mut u8>() = blocks.free;
        blocks.free = memory;
    }
}

/// Takes back what [`take`] gave for the same `len`. Signals are blocked.
pub(crate) fn give_back(memory: *mut u8, len: usize) {
    let len = whole_pages(len);
    let _held = PAGES.lock.hold();
    // SAFETY: the lock is held, and nobody uses the memory any more.
    unsafe {
        let Some(blocks) = Blocks::of(len) else { return sys::unmap(memory, len) };
        *memory.cast::<*mut u8>() = blocks.free;
        blocks.free = memory;
    }
}

impl Blocks {
    const NONE: Self = Self { free: ptr::null_mut(), slab: ptr::null_mut(), slab_left: 0 };

    /// One of these blocks, of `len` bytes; `map` gives memory for more.
    ///
    /// # Safety
    /// The lock is held.
    unsafe fn take(&mut self, len: usize, map: impl Fn(usize) -> *mut u8) -> *mut u8 {
        if !self.free.is_null() {
            let block = self.free;
            // SAFETY: free blocks are linked by their first word.
            unsafe {
                self.free = *block.cast::<*mut u8>();
                ptr::write_bytes(block, 0, len);
            }
            return block;
        }
        if self.slab_left == 0 {
            let slab = map(SLAB);
            if slab.is_null() {
                return ptr::null_mut();
            }
            let unaligned = slab.align_offset(len);
            self.slab = slab.wrapping_add(unaligned);
            self.slab_left = (SLAB - unaligned) / len * len;
        }
        self.slab_left -= len;
        self.slab.wrapping_add(self.slab_left)
    }

    /// Those of `len` bytes; `None` if that is more than a few pages.
    ///
    /// # Safety
    /// The lock is held.
    unsafe fn of(len: usize) -> Option<&'static mut Self> {
        // SAFETY: the caller holds the lock.
        unsafe { (*PAGES.state.get()).blocks.get_mut((len / PAGE).checked_sub(1)?) }
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
